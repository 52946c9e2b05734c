"""What one broker decides about control messages: where they go, and how many."""
