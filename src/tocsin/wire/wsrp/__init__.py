"""WS-ResourceProperties, the standard and its 1.2 draft: what a thing of the broker's is like."""
