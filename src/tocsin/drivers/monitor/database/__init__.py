"""The database of runs: its tables, and what the messages of a batch change in them."""
