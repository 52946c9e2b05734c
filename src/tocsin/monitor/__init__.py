"""What is known of workflow runs: folded from events in any order. Pure."""
