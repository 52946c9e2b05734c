"""The monitoring service of a running broker: it follows the log, folds it, answers questions."""
