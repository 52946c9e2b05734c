"""`tocsin run`: the wrapped process."""
