"""Protocol rules above the port: no sockets, no clock, no disk, no chance of their own."""
