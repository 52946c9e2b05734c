"""WS-Security 1.0 and 1.1: the Security header, user names, time stamps and X.509 signatures.

Everything here is about one message by itself. Whether a password or a certificate is anybody's,
and whether the message came before, is for the service that reads it.
"""
