"""Pull points of WS-BaseNotification 1.3: consumers that store notifications until fetched."""
