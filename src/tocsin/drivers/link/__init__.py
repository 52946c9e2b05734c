"""Links between brokers over TCP and TLS."""
