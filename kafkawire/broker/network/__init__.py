"""Connections, the order in which their requests are processed, and their responses."""
