"""The configuration keys of brokers, topics and groups: types, defaults, values; topic names."""

from .keys import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ConfigSource,
    ResourceType,
    Update,
    broker_configs,
    config_error,
    group_configs,
    has_resources,
    inherited,
    source_of,
    topic_configs,
)
from .listener_keys import STORES, ListenerKey, listener_key, prefixed
from .texts import broker_config_hint, config_texts, list_items, topic_config_hint
from .valid import ConfigType

__all__ = [
    "BROKER_CONFIGS",
    "CLIENT_METRICS_CONFIGS",
    "ConfigKey",
    "ConfigSource",
    "ConfigType",
    "GROUP_CONFIGS",
    "ListenerKey",
    "STORES",
    "ResourceType",
    "TOPIC_CONFIGS",
    "Update",
    "broker_config_hint",
    "broker_configs",
    "config_error",
    "config_texts",
    "group_configs",
    "has_resources",
    "inherited",
    "list_items",
    "listener_key",
    "prefixed",
    "source_of",
    "topic_config_hint",
    "topic_configs",
]
