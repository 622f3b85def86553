"""The histories of groups: members, assignments, rebalances, commits, absences, deliveries."""
