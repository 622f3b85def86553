"""Partition logs: batches, leader epochs, validation, conversion, producer state."""
