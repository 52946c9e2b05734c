"""The commands, found by their file names."""
