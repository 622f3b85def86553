"""Selects the messages of a capture that match a filter (`kafkawire.capture.filters`)."""
