"""Code shared by all stages; each folder holds one concern."""
