"""Secure topics at a broker (paper 003): who signs in with a key, and the grants they present."""
