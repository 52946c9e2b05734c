"""Design-time evolution: workflow files as definitions, their versions, and what changed."""
