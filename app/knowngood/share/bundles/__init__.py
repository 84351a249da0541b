"""Evidence as a file: export, import, push."""
