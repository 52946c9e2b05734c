"""Routing of ordinary events and subscriptions between the brokers of a tree (paper 001, 3)."""
