"""Classic groups: members, states, and rebalances in which a member assigns partitions."""
