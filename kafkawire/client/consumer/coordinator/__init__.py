"""Coordination of the components in a rebalance: preparing, assignments, commits.

As Kafka's ConsumerCoordinator, it decides the order; the requests are made by `group` and
`offsets`.
"""
