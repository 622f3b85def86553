"""Partition logs: appends, validation, producer state."""
