"""WS-Eventing 2004/08 and 2011/03, and what WS-Management adds to the older one."""
