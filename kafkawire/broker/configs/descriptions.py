"""Describes configuration for DescribeConfigs and CreateTopics.

Every value has its source; synonyms are the sources in the order of precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

from ...configs import (
    CLIENT_METRICS_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ConfigSource,
    ConfigType,
    ListenerKey,
    Update,
    listener_key,
)
from ...configs.documentation import (
    BROKER_DOCUMENTATION,
    GROUP_DOCUMENTATION,
    TOPIC_DOCUMENTATION,
)
from ...configs.keys import OUTSIDE
from .settings import DYNAMIC, Settings

Synonym = tuple[str, str | None, ConfigSource]
STATIC: Final = ConfigSource.STATIC_BROKER_CONFIG
NO_DOCUMENTATION: Final = ""
"""Of loggers, also where no documentation is requested: not null, as in Kafka."""


class Described(NamedTuple):
    """One value, None if it is sensitive or unset.

    synonyms: (key, value, source) of each source that has one. documentation: null for keys that
    have no effect.
    """

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    synonyms: list[Synonym]
    read_only: bool = False
    sensitive: bool = False
    documentation: str | None = None


def topic_described(settings: Settings, own: Mapping[str, str]) -> list[Described]:
    """Describe all keys of a topic. own: the values set for it."""
    return [
        _described(
            name,
            key,
            settings.topic(own, name),
            _own(name, key, own, ConfigSource.DYNAMIC_TOPIC_CONFIG)
            + _broker_synonyms(settings, [synonym.name for synonym in key.synonyms], {}),
            TOPIC_DOCUMENTATION.get(name),
        )
        for name, key in _shown_keys(settings.topic_keys, own)
    ]


def group_described(
    settings: Settings, keys: Mapping[str, ConfigKey], own: Mapping[str, str]
) -> list[Described]:
    """Describe keys of a group. own: the values set for it."""
    rows = []
    for name, key in _shown_keys(keys, own):
        default_name = f"group.{name}" if key.internal else name
        default = (default_name, key.default, ConfigSource.DEFAULT_CONFIG)
        inherited = _broker_synonyms(settings, [synonym.name for synonym in key.synonyms], {})
        set_here = _own(name, key, own, ConfigSource.DYNAMIC_GROUP_CONFIG)
        synonyms = set_here + (inherited or [default])
        value, documentation = synonyms[0][1], GROUP_DOCUMENTATION.get(name)
        rows.append(_described(name, key, value, synonyms, documentation))
    return rows


def client_metrics_described(own: Mapping[str, str]) -> list[Described]:
    """Describe all keys of a subscription of client metrics. own: the values set for it."""
    return [
        _described(
            name,
            key,
            own.get(name, key.default),
            _own(name, key, own, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
        )
        for name, key in _shown_keys(CLIENT_METRICS_CONFIGS, own)
    ]


def loggers_described(levels: Mapping[str, str]) -> list[Described]:
    """Describe loggers. levels: name -> level."""
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        Described(name, level, source, ConfigType.UNKNOWN, [], documentation=NO_DOCUMENTATION)
        for name, level in levels.items()
    ]


def _shown_keys(
    keys: Mapping[str, ConfigKey], own: Mapping[str, str]
) -> list[tuple[str, ConfigKey]]:
    return [(name, key) for name, key in sorted(keys.items()) if name in own or not key.internal]


def _own(name: str, key: ConfigKey, own: Mapping[str, str], source: ConfigSource) -> list[Synonym]:
    return [(name, key.normalized(own[name]), source)] if name in own else []


def _described(
    name: str,
    key: ConfigKey,
    value: str | None,
    synonyms: list[Synonym],
    documentation: str | None = None,
) -> Described:
    source = synonyms[0][2] if synonyms else ConfigSource.DEFAULT_CONFIG
    return Described(name, value, source, key.type, synonyms, documentation=documentation)


def broker_described(settings: Settings, own: Mapping[str, str]) -> list[Described]:
    """Describe all keys of a broker of the release, and those of its listeners.

    own: static values of that broker alone.
    """
    rows = [*_of_release(settings, own), *_of_listeners(settings, own)]
    return sorted(rows, key=lambda row: row.name)


def _of_release(settings: Settings, own: Mapping[str, str]) -> Iterator[Described]:
    quotas = {name: key for name, key in OUTSIDE.items() if _is_dynamic(settings, name)}
    for name, key in {**settings.keys, **quotas}.items():
        row = _shown(name, key, _broker_synonyms(settings, TOGETHER.get(name, (name,)), own, name))
        value = row.value
        yield row if value is None else row._replace(value=key.normalized(value))


def _of_listeners(settings: Settings, own: Mapping[str, str]) -> Iterator[Described]:
    """Describe the keys that listeners have values of their own for; read-only, as in Kafka."""
    for name in settings.effective:
        parsed = listener_key(name)
        if parsed is not None:
            rows = _broker_synonyms(settings, (parsed.name,), own)
            rows += [(name, value, source) for value, source in settings.configured(name)]
            rows.sort(key=lambda row: (row[2], row[0] != name))
            yield _shown(name, _of_listener(parsed), _from(name, rows))


def _of_listener(parsed: ListenerKey) -> ConfigKey:
    return parsed.key._replace(update=Update.READ_ONLY)


def default_described(settings: Settings) -> list[Described]:
    """Describe the dynamic default configuration of all brokers."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    of_listeners = {name: listener_key(name) for name in settings.altered(source)}
    keys = {
        **settings.keys,
        **OUTSIDE,
        **{name: _of_listener(each) for name, each in of_listeners.items() if each is not None},
    }
    return [
        _shown(name, keys[name], [(name, value, source)])
        for name, value in sorted(settings.altered(source).items())
        if name in keys
    ]


def _is_dynamic(settings: Settings, name: str) -> bool:
    return any(source in DYNAMIC for _, source in settings.configured(name))


def _shown(name: str, key: ConfigKey, synonyms: list[Synonym]) -> Described:
    if key.sensitive:
        synonyms = [(synonym, None, source) for synonym, _, source in synonyms]
    _, value, source = synonyms[0] if synonyms else (name, None, ConfigSource.DEFAULT_CONFIG)
    read_only = key.update is Update.READ_ONLY
    documentation = BROKER_DOCUMENTATION.get(name)
    return Described(
        name, value, source, key.type, synonyms, read_only, key.sensitive, documentation
    )


def _broker_synonyms(
    settings: Settings, names: Sequence[str], own: Mapping[str, str], described: str | None = None
) -> list[Synonym]:
    """Return each source of a value that a broker's keys have, in the order of precedence.

    names: keys for the same thing, as hours and minutes. described: the one of them, by default
    the first; what others have counts only after a value of its own, as in Kafka.
    """
    rows: list[Synonym] = []
    for name in names:
        values = settings.configured(name)
        rows += [(name, value, source) for value, source in values]
        if name in own and all(source is not STATIC for _, source in values):
            rows.append((name, own[name], STATIC))
        default = settings.default(name)
        if default is not None and name not in OUTSIDE:
            rows.append((name, default, ConfigSource.DEFAULT_CONFIG))
    rows.sort(key=lambda row: row[2])
    return _from(described or (names[0] if names else ""), rows)


def _from(name: str, rows: list[Synonym]) -> list[Synonym]:
    """Return the sources from the first one of a key on."""
    return list(dropwhile(lambda row: row[0] != name, rows))


def _together() -> dict[str, tuple[str, ...]]:
    """Return key of a broker -> the keys for the same thing; the first that is set counts."""
    groups = [tuple(synonym.name for synonym in key.synonyms) for key in TOPIC_CONFIGS.values()]
    together = {name: names for names in groups if len(names) > 1 for name in names}
    del together[FLUSH_CHECKS]
    return together


FLUSH_CHECKS: Final = "log.flush.scheduler.interval.ms"
"""Is the default of `log.flush.interval.ms`, and has a meaning of its own."""
TOGETHER: Final[Mapping[str, tuple[str, ...]]] = _together()
