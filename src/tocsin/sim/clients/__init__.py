"""Everybody who talks to a simulated broker, and the addresses that it pushes to."""
