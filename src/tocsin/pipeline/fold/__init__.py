"""The fold of messages into attempts and runs, as expressions of Spark."""
