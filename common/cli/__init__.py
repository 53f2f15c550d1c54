"""The `dpntk` command, and what all commands share."""
