"""Configuration of brokers and topics: keys, values, descriptions."""

from ...configs import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ResourceType,
    Update,
    broker_configs,
    config_error,
    source_of,
)
from .settings import Settings

__all__ = [
    "BROKER_CONFIGS",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "ResourceType",
    "Settings",
    "TOPIC_CONFIGS",
    "Update",
    "broker_configs",
    "config_error",
    "source_of",
]
