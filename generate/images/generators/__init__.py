"""The generators of images, and the table of them by name."""
