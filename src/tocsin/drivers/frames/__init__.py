"""The frames listeners: producers and consumers of performance events by TCP, TLS and UDP."""
