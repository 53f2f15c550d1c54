"""The normalised empirical neural tangent kernel of a network."""
