"""`tocsin archive`: where an archive is, what is in it, and replaying it."""
