"""A topic of Kafka as an archive."""
