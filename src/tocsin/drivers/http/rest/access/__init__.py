"""Who may do what: sign-in, tokens and rules, the audit log and the quotas."""
