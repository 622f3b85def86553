"""Stores the state of share partitions in `__share_group_state` (KIP-932).

ShareCoordinators ─▶ ShareCoordinator ─▶ log records ─▶ response
       ▲                     ▲                │
   Persister                 └── loading ◀────┘
"""
