"""Files that appear whole, locks, and the layout of files and folders."""
