"""WS-BaseNotification, WS-ResourceProperties, and ONVIF's pull points on top of them."""
