"""`tocsin sub`: one module a protocol."""
