"""Queries for topic advertisements: what may be asked, in which language, and what to look up."""
