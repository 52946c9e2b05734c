"""The archive of a running broker: filled by a process of its own, so that no publisher waits."""
