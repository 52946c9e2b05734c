"""Message boxes: what one holds, and how the original WS-Messenger's clients speak with them."""
