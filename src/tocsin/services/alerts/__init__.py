"""Alerts of the monitor, published through the broker's port."""
