"""The simulated world: the shipped broker, delivery and log, one seed, virtual time, faults."""
