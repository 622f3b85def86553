"""Decrypts TLS 1.2 and 1.3 with the keys of a key log, between TCP reassembly and Kafka frames."""
