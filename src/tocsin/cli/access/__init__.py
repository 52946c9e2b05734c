"""What `tocsin access` shows that takes more than one call."""
