"""Secure topics: what is signed when one is created, advertised and withdrawn, and its checks; and
queries for them."""
