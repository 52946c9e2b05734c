"""Who wants this event? Local, pure, indexed."""
