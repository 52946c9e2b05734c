"""Synth: an archive of a world that never was, as large as wanted, and the truth about it."""
