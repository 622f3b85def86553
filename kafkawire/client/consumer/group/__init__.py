"""Group membership of a consumer: joining, rebalancing, assignment."""
