"""Several simulated brokers as one overlay: their links, and what must hold between them."""
