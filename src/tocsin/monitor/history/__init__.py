"""How activities went in the past: from attempts that are kept, and from the pipeline's tables."""
