"""The calls of an admin client about configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...client.arguments import INT32, settings, text, topic_name, topic_names, whole
from . import configs
from .session import AdminSession
from .values import ConfigEntry, ConfigResource


class ConfigCalls(AdminSession):
    """Describes and alters configurations."""

    async def list_config_resources(
        self, resource_types: Iterable[str] = ()
    ) -> list[ConfigResource]:
        """List resources that have, or may have, a configuration, sorted (KIP-1142).

        resource_types: TOPIC, GROUP ...; () for all. Brokers from 3.7 to 4.0 list CLIENT_METRICS
        only, and only where it is the one type.
        """
        return await configs.list_resources(self._calls, resource_types)

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        keys: Iterable[str] | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Describe configurations, by resource and name; keys: None is all.

        A broker's is requested from that broker; the name "" is the default of all brokers.
        """
        wanted = None if keys is None else [text(key, "keys") for key in keys]
        details = configs.Details(include_synonyms, include_documentation)
        return await configs.describe_resources(self._calls, resources, wanted, details)

    async def alter_configs(
        self,
        resource: ConfigResource,
        changes: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Alter the configuration of a resource; None resets a value to its default."""
        checked = settings(changes, "changes")
        kind, name = configs.numbered(resource, "resource")
        await configs.alter(self._calls, kind, name, checked, validate_only=validate_only)

    async def describe_topic_config(self, topic: str) -> dict[str, ConfigEntry]:
        """Describe a topic's configuration, by name."""
        return await configs.describe(self._calls, configs.TOPIC, topic_name(topic))

    async def describe_topic_configs(
        self, names: Iterable[str], keys: Iterable[str] | None = None
    ) -> dict[str, dict[str, ConfigEntry]]:
        """Describe the configurations of topics, by topic and name; keys: None is all."""
        checked = list(topic_names(names, "names"))
        wanted = None if keys is None else [text(key, "keys") for key in keys]
        return await configs.describe_topics(self._calls, checked, wanted)

    async def describe_broker_config(self, broker_id: int) -> dict[str, ConfigEntry]:
        """Describe a broker's configuration, by name."""
        name = str(whole(broker_id, "broker_id", 0, INT32))
        return await configs.describe(self._calls, configs.BROKER, name)

    async def alter_topic_config(
        self, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Alter a topic's configuration; None resets a value to its default."""
        checked = settings(changes, "changes")
        name = topic_name(topic)
        await configs.alter(self._calls, configs.TOPIC, name, checked, validate_only=validate_only)

    async def describe_group_config(self, group_id: str) -> dict[str, ConfigEntry]:
        """Describe a group's configuration, by name: of consumer and share groups."""
        return await configs.describe(self._calls, configs.GROUP, text(group_id, "group_id"))

    async def alter_group_config(
        self, group_id: str, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Alter a group's configuration; None resets a value to its default.

        The group need not exist yet: `{"share.auto.offset.reset": "earliest"}`.
        """
        checked = settings(changes, "changes")
        name = text(group_id, "group_id")
        await configs.alter(self._calls, configs.GROUP, name, checked, validate_only=validate_only)
