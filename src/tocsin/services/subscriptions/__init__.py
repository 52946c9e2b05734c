"""Subscriptions and message boxes, as the REST interface has them."""
