"""Coordinates share groups, whose members read the same partitions together (KIP-932).

ShareGroupHeartbeat ─▶ ShareGroup ─▶ changes ─▶ log records ─▶ response
                           ▲                        │
                           └─────── loading ◀───────┘
"""
