"""The blackboard's messages (paper 004): groups of concept-value pairs, as JSON."""
