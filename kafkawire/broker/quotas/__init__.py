"""Quotas of users and clients: who has which, the rates, and what becomes of responses."""
