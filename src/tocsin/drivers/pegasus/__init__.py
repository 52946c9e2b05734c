"""The listener for pegasus-monitord, which writes its events to a TCP connection."""
