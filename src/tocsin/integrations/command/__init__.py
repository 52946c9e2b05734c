"""Any command as a workflow step that tells of itself: paper 000, section VIII."""
