"""From a stored image, in a file or an array, to the pixels of a record."""
