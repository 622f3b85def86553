"""Benchmarks of clients, beside other implementations."""
