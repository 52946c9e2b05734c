"""Protocol rules above the broker's port: coroutines that await nothing but what it gives."""
