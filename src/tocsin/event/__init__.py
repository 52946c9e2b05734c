"""The vocabulary: frozen types that everybody speaks."""
