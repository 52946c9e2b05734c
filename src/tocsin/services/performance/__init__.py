"""Performance events (paper 002): the broker as consumer and producer, by any transport."""
