"""Who asks, what they ask for, and the one function that decides whether they may."""
