"""What a host says of itself: processes, energy, counters; for its monitor and for runs."""
