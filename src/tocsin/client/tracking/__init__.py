"""Tell a blackboard what a workflow does (paper 004, section 3.2)."""
