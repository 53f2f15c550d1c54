"""What training shares, of images and of tables."""
