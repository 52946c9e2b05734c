"""The HTTP door: CloudEvents, streams, sockets and the REST API on one port."""
