"""SOAP and WS-Addressing in all their versions: what every Web-services dialect stands on."""
