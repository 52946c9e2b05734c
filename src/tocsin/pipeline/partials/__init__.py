"""Parts of the state: made from new events, and merged."""
