"""Where and with how much of a machine to compute."""
