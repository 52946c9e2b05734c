"""The descriptions of the API that are served: OpenAPI, AsyncAPI, and a page for people."""
