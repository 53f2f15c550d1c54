"""Class-wise sums of features, and the file that holds them."""
