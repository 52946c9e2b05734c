"""How much one principal, and one address, may have and send."""
