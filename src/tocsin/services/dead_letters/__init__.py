"""Dead letters: who may see them, and what they may do with them."""
