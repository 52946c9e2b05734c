"""The catalog of topic advertisements on disk: SQLite through apsw. Synchronous."""
