"""`tocsin evaluate`: readers of recorded runs."""
