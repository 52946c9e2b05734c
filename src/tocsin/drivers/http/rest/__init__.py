"""The REST application: everything that is not on the path of an event."""
