"""`tocsin evaluate discovery`: files, summaries, tables and plots of its experiments."""
