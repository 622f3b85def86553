"""The suites of other clients, run against our broker and Apache Kafka: `make peers`."""
