"""The catalog of topics in a process: its threads, and the processes that evaluate queries."""
