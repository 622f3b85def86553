"""Configuration as DescribeConfigs and CreateTopics tell it.

Law: every value says where it is from; synonyms are the places that were looked at, in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .configs import BROKER_CONFIGS, ConfigKey, ConfigSource, ConfigType, Settings

Synonym = tuple[str, str, ConfigSource]


class Described(NamedTuple):
    """One value. synonyms: (key, value, source) of each place that has one."""

    name: str
    value: str
    source: ConfigSource
    type: ConfigType
    synonyms: list[Synonym]


def described(
    settings: Settings, keys: Mapping[str, ConfigKey], own: Mapping[str, str]
) -> list[Described]:
    """Describe all keys of a topic, given what was set for it."""
    return [_topic_value(settings, name, key, own) for name, key in sorted(keys.items())]


def _topic_value(
    settings: Settings, name: str, key: ConfigKey, own: Mapping[str, str]
) -> Described:
    synonyms: list[Synonym] = []
    if name in own:
        synonyms.append((name, own[name], ConfigSource.DYNAMIC_TOPIC_CONFIG))
    if key.synonym is not None:
        synonyms += _broker_synonyms(settings, key.synonym)
    value, source = (key.default, ConfigSource.DEFAULT_CONFIG)
    if synonyms:
        _, value, source = synonyms[0]
    return Described(name, value, source, key.type, synonyms)


def broker_described(settings: Settings) -> list[Described]:
    """Describe all keys of a broker."""
    found = []
    for name, key in sorted(BROKER_CONFIGS.items()):
        synonyms = _broker_synonyms(settings, name)
        _, value, source = synonyms[0]
        found.append(Described(name, value, source, key.type, synonyms))
    return found


def _broker_synonyms(settings: Settings, name: str) -> list[Synonym]:
    default = (name, BROKER_CONFIGS[name].default, ConfigSource.DEFAULT_CONFIG)
    if name not in settings.given:
        return [default]
    return [(name, settings.given[name], settings.source(name)), default]
