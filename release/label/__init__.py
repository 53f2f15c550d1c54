"""What a release says of itself, for people and for programs."""
