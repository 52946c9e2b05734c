"""Brokers that form a tree: what one of them decides. Inputs and the time in, effects out."""
