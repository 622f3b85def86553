"""Fetching: sessions, completed fetches and the fetch buffer."""
