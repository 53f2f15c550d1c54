"""From a release of images to synthetic images."""
