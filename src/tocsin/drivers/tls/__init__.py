"""TLS: contexts, certificates of others, and files that are exchanged while the broker runs."""
