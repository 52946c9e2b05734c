"""Bytes between a client and a broker: addresses, HTTP/1.1, and streams of events."""
