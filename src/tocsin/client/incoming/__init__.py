"""How events come to a consumer: a live stream, a box, or a listener of its own."""
