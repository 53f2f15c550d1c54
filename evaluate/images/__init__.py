"""The utility of synthetic images, and their distance from real ones."""
