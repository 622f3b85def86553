"""Coordinates groups, classic, consumer and share groups, and stores committed offsets."""
