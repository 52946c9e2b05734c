"""New versions of the tables, and copies of them elsewhere."""
