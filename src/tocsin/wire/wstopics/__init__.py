"""WS-Topics 1.3: which topics there are, as a TopicSet and as TopicNamespaces."""
