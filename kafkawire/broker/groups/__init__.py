"""Coordinates consumer groups of the classic protocol, and stores their committed offsets."""
