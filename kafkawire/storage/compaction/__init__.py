"""Compaction: which logs and batches, and what is retained of them."""
