"""Reading images, in every supported form."""
