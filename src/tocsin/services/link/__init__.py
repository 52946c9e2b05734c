"""Links to other brokers: handshakes, routing tables, events on their way, resource discovery."""
