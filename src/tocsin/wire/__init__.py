"""Bytes <-> events, one room for each dialect. No sockets here."""
