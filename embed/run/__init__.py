"""A pass over the records, in shares and with checkpoints."""
