"""The verbs for messages and their schemas."""
