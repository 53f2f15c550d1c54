"""Training code shared by images and tables."""
