"""A cluster before 2.8: a controller elected in ZooKeeper, and its requests to the brokers.

Law: nothing here changes a topic or a leader. The broker's controller changes them, and calls this
for the requests that Kafka sends between brokers, each over a connection of its own.

    change of metadata ─▶ controller ─▶ request batch ─▶ channel of each broker ─▶ connection
"""
