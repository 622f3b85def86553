"""Clients that read and write columns, beside those that have records."""
