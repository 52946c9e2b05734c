"""Events in and out: the log, what engines post, subscriptions, boxes and dead letters."""
