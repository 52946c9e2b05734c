"""WS-BrokeredNotification: registered publishers, and publishing on demand."""
