"""`tocsin doctor`: the checks, by what they look at."""
