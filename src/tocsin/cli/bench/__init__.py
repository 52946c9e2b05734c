"""`tocsin bench`: the load generator."""
