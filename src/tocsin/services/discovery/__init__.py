"""Resource discovery (paper 001) for this broker's clients: resources, requests, watches."""
