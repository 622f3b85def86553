"""Group state followed passively: the classic protocol and those of heartbeats alone."""
