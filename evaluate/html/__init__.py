"""All that there is to see of synthetic records, as one HTML file."""
