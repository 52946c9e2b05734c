"""Tokens and rules over the API, kept with the log; and what the policy says of them."""
