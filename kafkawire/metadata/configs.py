"""Finds the value of a configuration key: dynamic, else static, else the default (KIP-226).

An empty static value counts as not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..configs import BROKER_CONFIGS, TOPIC_CONFIGS, ResourceType
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
            return dynamic
    return static.get(name) or BROKER_CONFIGS[name].default or ""


def topic_value(
    image: MetadataImage,
    topic: str,
    name: str,
    static: Mapping[str, str],
    broker: str = CLUSTER_WIDE,
) -> str:
    """Return the value of a topic's key, its own or that of the broker."""
    own = image.config(ResourceType.TOPIC, topic).get(name)
    synonym = TOPIC_CONFIGS[name].synonym
    if own is not None or synonym is None:
        return own or TOPIC_CONFIGS[name].default or ""
    return broker_value(image, synonym, static, broker)
