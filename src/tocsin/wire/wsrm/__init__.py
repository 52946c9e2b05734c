"""WS-ReliableMessaging 1.0 (2005/02) and 1.1 (200702): messages, and the two ends of a sequence.

Nothing here reads a clock or a socket: each end takes what arrived, and returns what to do.
"""
