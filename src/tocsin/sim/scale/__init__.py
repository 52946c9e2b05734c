"""How an overlay grows: messages, table rows and times with more brokers, resources, requests."""
