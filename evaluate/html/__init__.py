"""Everything there is to see of synthetic records, in one HTML file."""
