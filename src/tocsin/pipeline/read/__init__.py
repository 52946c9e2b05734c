"""What the archive has and the tables do not have yet."""
