"""`tocsin agent`: the agent process, and how its events are printed."""
