"""WS-ReliableMessaging: the receiving end, with the sequences that it keeps."""
