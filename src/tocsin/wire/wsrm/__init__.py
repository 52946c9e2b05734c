"""WS-ReliableMessaging 1.0 (2005/02) and 1.1 (200702): messages, and the two ends of a sequence.

Nothing here reads a clock or a socket: the ends are told what came, and say what follows from it.
"""
