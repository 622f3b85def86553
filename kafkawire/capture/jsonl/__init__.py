"""Rows as JSON lines, in Python and in C."""
