"""A sweep of Kafka's command line tools: the same calls at both brokers, their output compared."""
