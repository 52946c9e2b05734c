"""From what publishers and clients send to one commit, and the numbers that it gives."""
