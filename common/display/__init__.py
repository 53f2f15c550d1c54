"""What people see: the terminal, pages, texts, and how objects show themselves."""
