"""The configuration keys of brokers and topics, with their types, defaults and valid values."""

from .keys import (
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

__all__ = [
    "BROKER_CONFIGS",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "ResourceType",
    "TOPIC_CONFIGS",
    "Update",
    "broker_configs",
    "config_error",
    "source_of",
]
