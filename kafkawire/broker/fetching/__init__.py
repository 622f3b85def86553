"""Fetch: sessions, reading, and requests that wait for records."""
