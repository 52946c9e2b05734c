"""What somebody may do: rules and tokens, and the decision that is made of them."""
