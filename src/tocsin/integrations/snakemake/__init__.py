"""Snakemake: the hook in its process, and the messages that its log records become."""
