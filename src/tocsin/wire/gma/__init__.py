"""The producer/consumer protocol of the Grid Forum for performance events (paper 002)."""
