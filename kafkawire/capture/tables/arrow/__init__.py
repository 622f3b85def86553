"""Collects values column by column and builds Arrow arrays."""
