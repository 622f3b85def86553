"""Reads the configuration of topics, for `kafkawire topics --topic`.

A configuration that cannot be read is named with the reason; the topic is shown without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..render.report import Section

if TYPE_CHECKING:
    from kafkawire.net.admin import Admin, ConfigEntry


class TopicConfigs(NamedTuple):
    """The configuration of a topic, sorted by key. reason: why it could not be read."""

    entries: list[ConfigEntry]
    reason: str | None = None

    def lines(self) -> tuple[str, ...]:
        """Return lines of text about what is not in the table."""
        if self.reason is not None:
            return (f"configuration: {self.reason}",)
        return () if self.entries else ("configuration: defaults only",)

    def sections(self) -> list[Section]:
        """Return the configuration as a table, if there is any."""
        rows = [
            (each.name, _value(each), "default" if each.is_default else "topic")
            for each in self.entries
        ]
        return [Section("Configuration", ("key", "value", "set for"), rows)] if rows else []

    def json(self) -> dict[str, Any]:
        """Return the members of the topic's object; null if it could not be read."""
        if self.reason is not None:
            return {"configs": None, "configs_unavailable": self.reason}
        return {
            "configs": {
                each.name: {
                    "value": each.value,
                    "is_default": each.is_default,
                    "is_sensitive": each.is_sensitive,
                }
                for each in self.entries
            }
        }


def _value(entry: ConfigEntry) -> str:
    if entry.is_sensitive:
        return "(hidden)"
    return "null" if entry.value is None else entry.value or '""'


async def read_configs(admin: Admin, names: list[str], *, every: bool) -> dict[str, TopicConfigs]:
    """Read configurations, by topic. every: also what is not set for the topic."""
    from kafkawire.client.failures import BrokerError

    try:
        configs = await admin.describe_topic_configs(names)
    except BrokerError as error:
        return dict.fromkeys(names, TopicConfigs([], str(error)))
    return {
        name: TopicConfigs(
            [entry for _, entry in sorted(configs[name].items()) if every or not entry.is_default]
        )
        for name in names
    }
