"""What `POST /events` takes, and how it is answered."""
