"""The real world: sockets, disk, clock. Thin, because everything that decides is elsewhere."""
