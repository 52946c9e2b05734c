"""WS-BrokeredNotification, 1.3 and 1.2: publishers that register, and publish on demand."""
