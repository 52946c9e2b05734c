"""Sign-in, rules and the audit log of one process: their files, and the keys of issuers."""
