"""Appends to and reads from the partitions that brokers lead; fetch sessions, delayed fetches."""
