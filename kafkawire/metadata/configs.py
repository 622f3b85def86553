"""Finds the value of a configuration key: dynamic, else static, else the default (KIP-226).

An empty static value counts as not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..configs import BROKER_CONFIGS, TOPIC_CONFIGS, ResourceType, inherited
from .image import MetadataImage

CLUSTER_WIDE: Final = ""
"""The name of the broker resource whose values all brokers have."""


def broker_value(
    image: MetadataImage, name: str, static: Mapping[str, str], broker: str = CLUSTER_WIDE
) -> str:
    """Return the value of a broker's key. broker: its id, as the name of its resource."""
    for resource in (broker, CLUSTER_WIDE):
        dynamic = image.config(ResourceType.BROKER, resource).get(name)
        if dynamic is not None:
            return BROKER_CONFIGS[name].normalized(dynamic)
    value = static.get(name)
    return BROKER_CONFIGS[name].normalized(value) if value else BROKER_CONFIGS[name].default or ""


def topic_value(
    image: MetadataImage,
    topic: str,
    name: str,
    static: Mapping[str, str],
    broker: str = CLUSTER_WIDE,
) -> str:
    """Return the value of a topic's key, its own or that of the broker."""
    return value_of_topic(image, image.config(ResourceType.TOPIC, topic), name, static, broker)


def value_of_topic(
    image: MetadataImage,
    configs: Mapping[str, str],
    name: str,
    static: Mapping[str, str],
    broker: str = CLUSTER_WIDE,
) -> str:
    """Return the value of a key of a topic with these configs."""
    own = configs.get(name)
    key = TOPIC_CONFIGS[name]
    if own is not None:
        return key.normalized(own)
    return inherited(key, lambda synonym: broker_value(image, synonym, static, broker))
