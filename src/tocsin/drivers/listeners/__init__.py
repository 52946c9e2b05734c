"""What listeners share: addresses, connections counted, memory for what is received."""
