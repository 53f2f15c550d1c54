"""The `dpntk` command, and code shared by all commands."""
