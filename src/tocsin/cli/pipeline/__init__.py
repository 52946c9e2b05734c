"""`tocsin pipeline`: what its actions ask for and show."""
