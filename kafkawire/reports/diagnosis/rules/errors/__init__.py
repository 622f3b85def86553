"""Rules about error codes: of producers, members of groups, clients in general, and brokers."""
