"""One broker's brain: what happens goes in, what must be done comes out."""
