"""The parts of a small weather forecast whose steps are started by notifications."""
