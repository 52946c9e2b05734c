"""What WseClient and WsntClient share: calls over HTTP, a listener, leases and message boxes."""
