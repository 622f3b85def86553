"""The configured values of brokers and topics.

A topic's value takes precedence over the broker's, and that over the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...configs import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigKey,
    ConfigSource,
    Update,
    broker_config_hint,
    broker_configs,
    config_error,
    inherited,
    list_items,
    listener_key,
    prefixed,
    topic_configs,
)
from ...configs.keys import OUTSIDE

DYNAMIC: Final = (
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
)
"""The sources of values that are set while brokers run."""


class Settings:
    """A broker's values: those given, else the defaults. KeyError for an unknown key.

    keys, topic_keys: of the release, of brokers and of topics.
    """

    def __init__(
        self,
        static: Mapping[str, str] = {},
        keys: Mapping[str, ConfigKey] = BROKER_CONFIGS,
        topic_keys: Mapping[str, ConfigKey] = TOPIC_CONFIGS,
    ) -> None:
        self.keys = keys
        self.topic_keys = topic_keys
        for name, value in static.items():
            key = self.key(name)
            reason = config_error(key, name, value)
            if reason is not None:
                hint = broker_config_hint(name) if key is None else ""
                raise ValueError(f"{reason}{hint}")
        self._static = dict(static)
        self._dynamic: Mapping[ConfigSource, Mapping[str, str]] = {}
        self._numbers: dict[str, int] = {}
        self.effective: dict[str, str] = {}
        self.set_dynamic({})

    @classmethod
    def of_release(cls, static: Mapping[str, str], release: str) -> Settings:
        """Return a broker's values with the keys of a release."""
        return cls(static, broker_configs(release), topic_configs(release))

    def set_dynamic(self, values: Mapping[ConfigSource, Mapping[str, str]]) -> None:
        """Replace the dynamic values: of `DYNAMIC`, the source with precedence first."""
        self._dynamic = {source: dict(values.get(source, {})) for source in DYNAMIC}
        effective = dict(self._static)
        for source in reversed(DYNAMIC):
            effective.update(self._dynamic[source])
        self._numbers.clear()
        self.effective.clear()
        self.effective.update((name, _normalized(name, value)) for name, value in effective.items())

    def changed(self, source: ConfigSource, values: Mapping[str, str | None]) -> Settings:
        """Return the settings with other dynamic values of a source, None for a deleted one."""
        changed = Settings(self._static, self.keys, self.topic_keys)
        merged = {**self._dynamic[source], **values}
        kept = {name: value for name, value in merged.items() if value is not None}
        changed.set_dynamic({**self._dynamic, source: kept})
        return changed

    def altered(self, source: ConfigSource) -> Mapping[str, str]:
        """Return the dynamic values of a source: for one broker or for all."""
        return self._dynamic[source]

    def configured(self, name: str) -> list[tuple[str, ConfigSource]]:
        """Return the configured values of a key with their sources, the effective one first."""
        sources = {**self._dynamic, ConfigSource.STATIC_BROKER_CONFIG: self._static}
        return [(values[name], source) for source, values in sources.items() if name in values]

    def key(self, name: str) -> ConfigKey | None:
        """Return a key of the release, one that only others have, or one of a listener.

        None for an unknown key.
        """
        key = self.keys.get(name) or BROKER_CONFIGS.get(name)
        of_listener = listener_key(name) if key is None else None
        return key if of_listener is None else of_listener.key

    def applies(self, name: str, value: str) -> bool:
        """Whether a value that is set while the broker runs is valid, and used."""
        key = self.key(name)
        if key is None or self.lacks(name) or key.update is Update.READ_ONLY:
            return False
        return config_error(key, name, value) is None

    def lacks(self, name: str) -> bool:
        """Whether only other releases have a key: any value of it is stored, and used nowhere."""
        return name in BROKER_CONFIGS and name not in OUTSIDE and name not in self.keys

    def default(self, name: str) -> str | None:
        """Return a key's default in the release; KeyError for an unknown key."""
        return (self.keys.get(name) or BROKER_CONFIGS[name]).default

    def text(self, name: str) -> str:
        """The value as text; "" if unset."""
        text = self.effective.get(name)
        return (self.default(name) or "") if text is None else text

    def number(self, name: str) -> int:
        """The value of a numeric key."""
        number = self._numbers.get(name)  # every request needs some
        if number is None:
            number = self._numbers[name] = int(self.text(name))
        return number

    def seconds(self, name: str) -> float:
        """The value of a key in milliseconds."""
        return self.number(name) / 1000

    def flag(self, name: str) -> bool:
        """The value of a boolean key."""
        return self.text(name) == "true"

    def items(self, name: str) -> tuple[str, ...]:
        """The values of a list."""
        return list_items(self.text(name))

    def of_listener(self, listener: str, name: str) -> str:
        """The value of a key for a listener: its own, else that of all; "" if unset."""
        return self.own_of_listener(listener, name) or self.text(name)

    def own_of_listener(self, listener: str, name: str) -> str | None:
        """The value of a key that a listener alone has; None for none."""
        return self.effective.get(prefixed(listener, name))

    def of_mechanism(self, listener: str, mechanism: str, name: str) -> str:
        """The value of a key for a SASL mechanism of a listener: its own, else the listener's."""
        own = self.effective.get(prefixed(listener, name, mechanism))
        return self.of_listener(listener, name) if own is None else own

    def items_of_listener(self, listener: str, name: str) -> tuple[str, ...]:
        """The values of a list for a listener."""
        return list_items(self.of_listener(listener, name))

    def topic(self, configs: Mapping[str, str], name: str) -> str:
        """A topic's value: its own, else the broker's, else the default."""
        own = configs.get(name)
        key = self.topic_keys.get(name) or TOPIC_CONFIGS[name]
        if own is not None:
            return key.normalized(own)
        return inherited(key, self.text)


def _normalized(name: str, value: str) -> str:
    key = BROKER_CONFIGS.get(name)
    return value if key is None else key.normalized(value)
