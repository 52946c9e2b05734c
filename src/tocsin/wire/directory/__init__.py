"""The directory service of the Grid Monitoring Architecture: who offers which events, and where."""
