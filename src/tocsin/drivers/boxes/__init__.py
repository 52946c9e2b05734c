"""Message boxes at work: the office that keeps them, and how what they hold is handed out."""
