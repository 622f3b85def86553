"""Options that name resources with configurations, and that change these.

Secrets need not be arguments, which `ps` shows: `--add-config-file` reads a properties file.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from ..input.options import pairs
from ..input.panels import Panel
from ..input.profiles import read_properties
from .completion import complete_group, complete_topic
from .unknown_names import broker_ids

if TYPE_CHECKING:
    from kafkawire.net.admin import ConfigResource

ADD: Final = "--add-config"
ADD_FILE: Final = "--add-config-file"
DELETE: Final = "--delete-config"
STDIN: Final = "-"


class ResourceOptions(NamedTuple):
    """Whose configuration."""

    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Of this topic; repeatable.", autocompletion=complete_topic
        ),
    ] = None
    broker: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Of this broker; repeatable.")
    ] = None
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Of all brokers: their dynamic defaults.")
    ] = False
    broker_logger: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Log levels of this broker; repeatable."),
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Of this group; repeatable.", autocompletion=complete_group
        ),
    ] = None
    client_metrics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Of this subscription to metrics of clients; repeatable."
        ),
    ] = None

    def resources(self) -> list[ConfigResource]:
        """Return the resources that are named, each once. An invalid id is a usage error."""
        from kafkawire.net.admin import ConfigResource

        for option, ids in (("--broker", self.broker), ("--broker-logger", self.broker_logger)):
            broker_ids(ids or (), option)
        named = (
            ("TOPIC", self.topic or ()),
            ("BROKER", [*([""] if self.broker_defaults else []), *(self.broker or ())]),
            ("BROKER_LOGGER", self.broker_logger or ()),
            ("GROUP", self.group or ()),
            ("CLIENT_METRICS", self.client_metrics or ()),
        )
        return list(
            dict.fromkeys(ConfigResource(kind, name) for kind, names in named for name in names)
        )


ALL_RESOURCES: Final = ResourceOptions()


class ConfigChanges(NamedTuple):
    """Values that are set and removed."""

    add_config: Annotated[
        list[str] | None,
        typer.Option(
            ADD, metavar="KEY=VALUE", help="Set a value; repeatable.", rich_help_panel=Panel.CHANGES
        ),
    ] = None
    add_config_file: Annotated[
        Path | None,
        typer.Option(
            ADD_FILE,
            metavar="FILE",
            help="Set the values of a properties file, - for standard input: for secrets.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None
    delete_config: Annotated[
        list[str] | None,
        typer.Option(
            DELETE,
            metavar="KEY",
            help="Remove a value, so that the default counts; repeatable.",
            rich_help_panel=Panel.CHANGES,
        ),
    ] = None

    @property
    def any(self) -> bool:
        """Whether values are set or removed."""
        return self != NO_CONFIG_CHANGES

    @property
    def first(self) -> str:
        """The first of these options that is used, for messages."""
        options = zip((ADD, ADD_FILE, DELETE), self, strict=True)
        return next((option for option, value in options if value), ADD)

    def parsed(self) -> dict[str, str | None]:
        """Return the changes: None removes a value. A key that is named twice is a usage error."""
        changes: dict[str, str | None] = {}
        for option, values in (
            (ADD, pairs(self.add_config, ADD)),
            (ADD_FILE, _properties(self.add_config_file)),
            (DELETE, dict.fromkeys(self.delete_config or ())),
        ):
            for key, value in values.items():
                if key in changes:
                    raise typer.BadParameter(f"{key} is also set", param_hint=option)
                changes[key] = value
        return changes


NO_CONFIG_CHANGES: Final = ConfigChanges()


def _properties(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        text = sys.stdin.read() if str(path) == STDIN else path.read_text("utf-8")
        return read_properties(text)
    except OSError as error:
        message = f"{path}: {error.strerror}"
        raise typer.BadParameter(message, param_hint=ADD_FILE) from None
    except ValueError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint=ADD_FILE) from None


def known_keys(resource: ConfigResource) -> Collection[str]:
    """Return the configuration keys of a type of resources; () if any key is valid."""
    from kafkawire.configs import (
        BROKER_CONFIGS,
        CLIENT_METRICS_CONFIGS,
        GROUP_CONFIGS,
        TOPIC_CONFIGS,
    )

    of_type = {
        "TOPIC": TOPIC_CONFIGS,
        "BROKER": BROKER_CONFIGS,
        "GROUP": GROUP_CONFIGS,
        "CLIENT_METRICS": CLIENT_METRICS_CONFIGS,
    }
    return of_type.get(resource.resource_type, ())
