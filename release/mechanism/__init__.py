"""The Gaussian mechanisms, and the privacy accounting of their noise."""
