"""Exchanges: conversations followed passively, responses paired with requests."""
