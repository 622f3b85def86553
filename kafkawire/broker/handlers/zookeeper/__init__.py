"""The handlers of the APIs between brokers of a cluster with ZooKeeper, before 2.8."""
