"""What is publicly known of a column of a table."""
