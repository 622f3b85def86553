"""Coordinates consumer groups of KIP-848, whose assignments the coordinator computes.

ConsumerGroupHeartbeat ─▶ ConsumerGroup ─▶ changes ─▶ log records ─▶ response
                              ▲                           │
                              └──────── loading ◀─────────┘
"""
