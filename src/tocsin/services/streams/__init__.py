"""Sessions that follow the log over one connection: server-sent events and WebSockets."""
