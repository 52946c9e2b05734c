"""The REST application: everything behind the door that is not on the way of an event."""
