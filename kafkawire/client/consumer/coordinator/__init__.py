"""Coordination of the components in a rebalance: preparing, assignments, commits.

Law: as Kafka's ConsumerCoordinator, it decides the order; the requests are made by `group` and
`offsets`.
"""
