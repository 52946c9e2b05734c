"""The frames door: producers and consumers of performance events (paper 002)."""
