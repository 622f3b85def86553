"""Positions of a consumer: commits, resets and look-ups of offsets."""
