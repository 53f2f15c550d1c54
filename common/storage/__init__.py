"""Reading files that may come from somebody else."""
