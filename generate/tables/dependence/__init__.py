"""How the columns of a class depend on each other, estimated from what a release says of them."""
