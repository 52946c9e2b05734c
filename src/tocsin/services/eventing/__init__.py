"""WS-Eventing and the modes of WS-Management: subscriptions, pulling, heartbeats, their end."""
