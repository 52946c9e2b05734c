"""`tocsin pub`: lines of a file, and Web-services clients."""
