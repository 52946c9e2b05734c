"""What is written down of who did what: records, lines in a file, and questions about them."""
