"""Pull points of WS-BaseNotification 1.3: consumers that keep what they are told until asked."""
