"""Any command as a workflow step that reports itself: paper 000, section VIII."""
