"""What can be asked about runs, over one connection to their database."""
