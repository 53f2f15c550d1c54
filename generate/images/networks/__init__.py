"""Networks that make images, as the paper has them."""
