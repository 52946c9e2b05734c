"""`tocsin wf`: one module an action."""
