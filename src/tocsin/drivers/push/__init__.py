"""Pushing events to webhooks: HTTP/1.1 requests over connections that stay open."""
