"""The draft of a table's schema, from what its values look like."""
