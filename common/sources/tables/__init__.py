"""Reading tables, in every supported form."""
