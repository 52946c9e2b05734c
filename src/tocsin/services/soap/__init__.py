"""Every Web-services dialect of the broker, whatever transport a call came by."""
