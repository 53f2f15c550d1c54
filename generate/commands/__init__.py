"""The command of stage three."""
