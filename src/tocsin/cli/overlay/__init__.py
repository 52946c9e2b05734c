"""What `tocsin overlay` prints."""
