"""The feature maps."""
