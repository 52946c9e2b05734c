"""The log on disk: SQLite through apsw. Synchronous; the drivers and the simulator call it."""
