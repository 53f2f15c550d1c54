"""Images, in every form in which they are read."""
