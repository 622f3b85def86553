"""The log of a partition: appends, validation, producer state."""
