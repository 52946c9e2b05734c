"""`tocsin concepts`: vocabularies shown as trees."""
