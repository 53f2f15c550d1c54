"""Features of records in whole grid units, without rounding errors."""
