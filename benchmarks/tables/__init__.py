"""Measures tables in files beside what else writes the same columns."""
