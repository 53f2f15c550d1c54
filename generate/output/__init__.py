"""What is written beside the records."""
