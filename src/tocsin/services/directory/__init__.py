"""The directory of producers and consumers (paper 002)."""
