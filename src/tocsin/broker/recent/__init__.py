"""The end of the log in memory: its events, the latest on a topic, topics and types seen."""
