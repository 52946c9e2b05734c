"""Pushing: a lane to each sink, in order and with retries; handshakes, and what was given up."""
