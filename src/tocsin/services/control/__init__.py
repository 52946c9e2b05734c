"""Control messages between brokers, and to services and entities that are connected."""
