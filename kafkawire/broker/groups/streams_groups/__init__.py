"""Coordinates Streams groups, whose members run the tasks of a Kafka Streams topology (KIP-1071).

StreamsGroupHeartbeat ─▶ StreamsGroup ─▶ changes ─▶ log records ─▶ response
                            ▲   │                        │
                            │   └─▶ internal topics      │
                            └────────── loading ◀────────┘
"""
