"""The blackboard of a running broker (paper 004)."""
