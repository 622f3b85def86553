"""The log of a replica: what replication needs of it, and one in memory that survives crashes."""
