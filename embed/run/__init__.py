"""A pass over the records, divided into shares and saved in checkpoints."""
