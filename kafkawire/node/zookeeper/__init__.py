"""A cluster before 2.8: a controller elected in ZooKeeper, and its requests to the brokers.

Nothing here changes a partition or a leader. The quorum's controller changes them; what it has
committed becomes the requests that Kafka's controller sends to the brokers, each over a connection
of its own. Brokers compare their epochs, and have the metadata itself from the quorum.

    Published ─▶ changes ─▶ controller ─▶ request batch ─▶ channel of each broker ─▶ connection
"""
