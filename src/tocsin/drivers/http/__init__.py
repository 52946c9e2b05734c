"""The HTTP server: CloudEvents, streams, sockets and the REST API on one port."""
