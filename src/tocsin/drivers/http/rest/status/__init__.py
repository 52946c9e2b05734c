"""For those who run a broker: its state, metrics, health and clock, and the API described."""
