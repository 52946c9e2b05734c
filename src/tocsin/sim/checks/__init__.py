"""What must hold: the log, subscriptions, deliveries, attempts and boxes."""
