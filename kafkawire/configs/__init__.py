"""The configuration keys of brokers and topics: types, defaults, values; names of topics."""

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
