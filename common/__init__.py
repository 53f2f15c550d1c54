"""What all stages share; each folder holds one concern."""
