"""Incidents: real clients in trouble at a real Kafka, recorded as small captures."""
