"""Rights that the owner of a topic passes on: who has them is proved by signatures alone."""
