"""`/runs`, `/activities`, `/workflows`, `/files` and `/estimates`: what the monitor answers."""
