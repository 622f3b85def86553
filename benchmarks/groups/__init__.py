"""Benchmarks of consumer groups."""
