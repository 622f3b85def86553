"""Describes configuration for DescribeConfigs and CreateTopics.

Every value has its source; synonyms are the sources in the order of precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...configs import ConfigKey, ConfigSource, ConfigType, Update, listener_key
from .settings import Settings

Synonym = tuple[str, str | None, ConfigSource]


class Described(NamedTuple):
    """One value, None if it is sensitive or unset.

    synonyms: (key, value, source) of each source that has one.
    """

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: list[Synonym]
    read_only: bool = False
    sensitive: bool = False


def described(
    settings: Settings,
    keys: Mapping[str, ConfigKey],
    own: Mapping[str, str],
    source: ConfigSource = ConfigSource.DYNAMIC_TOPIC_CONFIG,
) -> list[Described]:
    """Describe all keys of a topic or a group. own: the values set for it. source: of these."""
    return [_own_value(settings, name, key, own, source) for name, key in sorted(keys.items())]


def _own_value(
    settings: Settings, name: str, key: ConfigKey, own: Mapping[str, str], own_source: ConfigSource
) -> Described:
    synonyms: list[Synonym] = []
    if name in own:
        synonyms.append((name, own[name], own_source))
    if key.synonym is not None:
        synonyms += _broker_synonyms(settings, key.synonym, {})
    elif own_source is ConfigSource.DYNAMIC_GROUP_CONFIG:
        synonyms.append((name, key.default, ConfigSource.DEFAULT_CONFIG))
    value, source = (key.default, ConfigSource.DEFAULT_CONFIG)
    if synonyms:
        _, value, source = synonyms[0]
    return Described(name, value, source, key.type, synonyms)


def broker_described(settings: Settings, own: Mapping[str, str]) -> list[Described]:
    """Describe all keys of a broker of the release, and those of its listeners.

    own: static values of that broker alone.
    """
    of_release = [
        _shown(name, key, _broker_synonyms(settings, name, own))
        for name, key in settings.keys.items()
    ]
    return sorted((*of_release, *_of_listeners(settings, own)), key=lambda each: each.name)


def _of_listeners(settings: Settings, own: Mapping[str, str]) -> Iterator[Described]:
    """Describe the keys that listeners have values of their own for; read-only, as in Kafka."""
    for name, value in settings.given.items():
        parsed = listener_key(name)
        if parsed is not None:
            static = (name, value, ConfigSource.STATIC_BROKER_CONFIG)
            synonyms = [static, *_broker_synonyms(settings, parsed.name, own)]
            key = parsed.key._replace(update=Update.READ_ONLY)
            yield _shown(name, key, synonyms)


def default_described(settings: Settings) -> list[Described]:
    """Describe the dynamic default configuration of all brokers."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return [
        _shown(name, settings.keys[name], [(name, value, source)])
        for name, value in sorted(settings.altered(source).items())
        if name in settings.keys
    ]


def _shown(name: str, key: ConfigKey, synonyms: list[Synonym]) -> Described:
    if key.sensitive:
        synonyms = [(synonym, None, source) for synonym, _, source in synonyms]
    _, value, source = synonyms[0] if synonyms else (name, None, ConfigSource.DEFAULT_CONFIG)
    read_only = key.update is Update.READ_ONLY
    return Described(name, value, source, key.type, synonyms, read_only, key.sensitive)


def _broker_synonyms(settings: Settings, name: str, own: Mapping[str, str]) -> list[Synonym]:
    found: list[Synonym] = [(name, value, source) for value, source in settings.given_at(name)]
    if name in own and not any(each[2] is ConfigSource.STATIC_BROKER_CONFIG for each in found):
        found.append((name, own[name], ConfigSource.STATIC_BROKER_CONFIG))
    default = settings.default(name)
    if default is not None:
        found.append((name, default, ConfigSource.DEFAULT_CONFIG))
    return found
