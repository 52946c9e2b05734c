"""Message boxes: what is sent to them is kept, handed out, and kept until the answer arrived."""
