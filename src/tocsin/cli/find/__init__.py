"""What only `tocsin find` needs."""
