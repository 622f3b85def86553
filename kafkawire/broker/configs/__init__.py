"""What is set for the brokers of a cluster, and the descriptions of their configuration."""

from .settings import Settings

__all__ = ["Settings"]
