"""Metrics of clients, by Kafka's names."""

from .metrics import MetricName, Metrics
from .sensors import SampleSettings

__all__ = ["MetricName", "Metrics", "SampleSettings"]
