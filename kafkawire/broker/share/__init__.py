"""Delivers the records of partitions to the members of share groups (KIP-932).

ShareFetch ─▶ ShareSessions ─▶ ShareFetches ─▶ SharePartition ─▶ acquired records
ShareAcknowledge ─▶ Acknowledgements ──────────────┘   │
                                                       └─▶ writes ─▶ Persister
"""
