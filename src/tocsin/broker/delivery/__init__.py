"""From match to sink: a place in the log, a lane per sink, when to try again, what was given up."""
