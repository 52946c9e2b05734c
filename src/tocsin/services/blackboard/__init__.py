"""The blackboard (paper 004): the aggregate profile, publishers and subscribers."""
