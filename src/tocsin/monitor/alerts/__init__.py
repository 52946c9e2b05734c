"""Alerts: which activities and runs take longer than usual, and the messages about them. Pure."""
