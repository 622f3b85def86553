"""A real Apache Kafka broker, its tools and real clients, against this package."""
