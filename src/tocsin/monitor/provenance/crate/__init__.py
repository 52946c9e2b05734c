"""A run as a Workflow Run RO-Crate."""
