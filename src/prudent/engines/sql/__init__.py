"""The queries that both engines run word for word."""
