"""Performance events (paper 002): the broker as consumer and producer, whatever carries messages."""
