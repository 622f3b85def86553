"""Membership in a consumer group whose assignments its coordinator computes (KIP-848)."""
