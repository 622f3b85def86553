"""Policies of clean-up: retention deletes segments, compaction keeps the latest of each key."""
