"""Where a broker keeps its log: stores by name, their threads, room on the disk, backups."""
