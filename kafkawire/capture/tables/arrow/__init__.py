"""Columns as Arrow arrays, and what fills them."""
