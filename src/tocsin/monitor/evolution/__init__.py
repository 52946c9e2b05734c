"""What a workflow is before it runs, and what changed in it from one version to the next. Pure."""
