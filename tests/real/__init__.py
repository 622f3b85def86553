"""Tests with a real Apache Kafka broker, its tools and real clients."""
