"""The core of one broker: what happens goes in, what must be done comes out."""
