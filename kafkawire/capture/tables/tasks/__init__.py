"""Cuts the making of tables into tasks for several processes, and merges what they make."""
