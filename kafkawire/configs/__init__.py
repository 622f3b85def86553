"""The configuration keys of brokers, topics and groups: types, defaults, values; topic names."""

from .keys import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    LEAST,
    SHARE_CONFIGS_SINCE,
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
from .listener_keys import ListenerKey, listener_key, prefixed
from .texts import broker_config_hint, config_texts, list_items, topic_config_hint

__all__ = [
    "BROKER_CONFIGS",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "GROUP_CONFIGS",
    "LEAST",
    "ListenerKey",
    "SHARE_CONFIGS_SINCE",
    "ResourceType",
    "TOPIC_CONFIGS",
    "Update",
    "broker_config_hint",
    "broker_configs",
    "config_error",
    "config_texts",
    "list_items",
    "listener_key",
    "prefixed",
    "source_of",
    "topic_config_hint",
]
