"""WS-BaseNotification 1.3, 1.2 and 1.0: both sides of every message, faults and deliveries."""
