"""How good estimates and alerts are, measured on recorded runs."""
