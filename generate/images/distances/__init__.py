"""The distances between generated images and a release."""
