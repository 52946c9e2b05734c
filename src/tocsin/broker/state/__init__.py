"""What the parts of one broker share: subscribers, timers, counters, what anybody wants."""
