"""The SOAP door: one desk for every Web-services dialect, whatever transport a call came by."""
