"""The link protocol: what brokers of an overlay send each other (paper 001)."""
