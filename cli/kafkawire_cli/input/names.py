"""Finds APIs by what a user types: `Fetch`, `fetch`, `FetchRequest`, `list_offsets`, an API key.

What the shell completes is what the options accept, in their spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from kafkawire.display import most_similar
from kafkawire.whole_numbers import whole_number

from .inputs import MissingOption

if TYPE_CHECKING:
    from kafkawire import Registry
    from kafkawire.primitives import MessageIndex, MessageInfo
    from kafkawire_codegen.releases import Releases

    Messages = Registry | MessageIndex
    """The messages of a package; where it is None, Kafka's."""


def suggestion(text: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` with the name most similar to `text`; "" if none is similar."""
    names = list(known)
    plain = text.lower().strip("*?[]")
    close = most_similar(plain, names)
    if close is None and len(plain) > 3:  # part of a name, as in globs
        close = next((name for name in names if plain in name.lower()), None)
    return "" if close is None else f"; did you mean {close}?"


def api_names(registry: Messages | None = None) -> list[str]:
    """List the names of all APIs."""
    return [
        info.name.removesuffix("Request")
        for info in _messages(registry)
        if info.type == "request" and info.api_key is not None
    ]


def _messages(registry: Messages | None) -> Messages:
    if registry is not None:
        return registry
    from kafkawire.messages import REGISTRY

    return REGISTRY


def api_key(text: str, option: str = "--api", registry: Messages | None = None) -> int:
    """Find the API key by name or number; a usage error suggests a similar name."""
    plain = text.replace("_", "").replace("-", "").lower()
    keys = {
        info.name.removesuffix("Request").lower(): info.api_key
        for info in _messages(registry)
        if info.type == "request" and info.api_key is not None
    }
    if plain.isdecimal():
        number = whole_number(plain, max(keys.values(), default=0))
        if number is not None and number in keys.values():
            return number
        raise typer.BadParameter(f"unknown API key {text}", param_hint=option)
    short = plain.removesuffix("request").removesuffix("response")
    found_key = keys.get(short)
    if found_key is None:
        hint = suggestion(short, api_names(registry))
        raise typer.BadParameter(f"unknown API {text!r}{hint}", param_hint=option)
    return found_key


def check_tables(names: Iterable[str], package: str | None) -> None:
    """Check that tables exist, and are of any package if one is given; else a usage error."""
    from kafkawire.capture.tables.tables import OF_ANY_PACKAGE, TABLES

    for name in names:
        if name not in TABLES:
            raise unknown_table(name)
        if package is not None and name not in OF_ANY_PACKAGE:
            raise typer.BadParameter(f"{name} has only Kafka's messages", param_hint="--registry")


def unknown_table(name: str) -> typer.BadParameter:
    """Make the usage error for a table that does not exist, or that only a report has."""
    from kafkawire.capture.tables import TABLES
    from kafkawire.reports.tables import REPORT_TABLES

    hint = suggestion(name, TABLES)
    if name in REPORT_TABLES:
        hint = f"; kafkawire sql has it: SELECT * FROM {name}"
    return typer.BadParameter(
        f"unknown table {name!r}; tables: {', '.join(TABLES)}{hint}", param_hint="--table"
    )


def message_name(text: str, direction: str, registry: Messages | None = None) -> str:
    """Find a message by its name, or by its API and direction."""
    messages = _messages(registry)
    if text in messages:
        return text
    return message_of(text, direction, registry).name


def message_of(text: str, direction: str, registry: Messages | None = None) -> MessageInfo:
    """Find the message of an API and a direction."""
    key = api_key(text, registry=registry)
    for one in _messages(registry):
        if (one.type, one.api_key) == (direction, key):
            return one
    raise typer.BadParameter(f"{text} has no {direction}", param_hint="--api")


def captured_message(text: str, option: str = "--bodies") -> str:
    """Find a request or response by its name; a usage error names those that are similar."""
    names = {name.lower(): name for name in captured_messages()}
    plain = text.replace("_", "").replace("-", "").lower()
    if plain in names:
        return names[plain]
    both = [names[f"{plain}{end}"] for end in ("request", "response") if f"{plain}{end}" in names]
    hint = f"; expected {' or '.join(both)}" if both else suggestion(plain, names.values())
    raise typer.BadParameter(f"unknown message {text!r}{hint}", param_hint=option)


def captured_messages() -> list[str]:
    """List the names of all requests and responses."""
    from kafkawire.messages import REGISTRY

    return [info.name for info in REGISTRY if info.type in ("request", "response")]


def checked_version(info: MessageInfo, version: int | None) -> int:
    """Check that a message has a version; the usage error lists its versions."""
    valid = f"{info.name} has versions {info.first}-{info.last}"
    if version is None:
        raise MissingOption(f"{valid}", param_hint="--version")
    if not info.first <= version <= info.last:
        raise typer.BadParameter(f"unsupported version {version}: {valid}", param_hint="--version")
    return version


def direction_of(text: str) -> str:
    """Check that a direction is `request` or `response`."""
    if text not in ("request", "response"):
        directions = ("request", "response")
        raise typer.BadParameter(
            f"{text!r} is not a valid direction: expected request or response"
            f"{suggestion(text, directions)}",
            param_hint="--direction",
        )
    return text


def releases_of_kafka() -> Releases:
    """Read which API versions each Kafka release has."""
    from kafkawire_codegen import schemas_dir
    from kafkawire_codegen.files import RELEASES
    from kafkawire_codegen.releases import read

    return read(schemas_dir() / RELEASES)


def latest_release(releases: Releases) -> str:
    """Return the latest release; `trunk` is none."""
    return [name for name in releases.ranges if name[:1].isdecimal()][-1]


def known_release(target: str, releases: Releases) -> str:
    """Find a release; a patch release has the protocol of its minor release."""
    for text in (target, re.sub(r"^v?(\d+\.\d+)(\.\d+)?$", r"\1", target)):
        if text in releases.ranges:
            return text
    raise typer.BadParameter(
        f"unknown release {target!r}; releases: {', '.join(releases.ranges)}",
        param_hint="--target",
    )


# -- completion by the shell


def complete_api(incomplete: str) -> list[str]:
    """Complete the name of an API."""
    return _beginning(incomplete, api_names())


def complete_message(incomplete: str) -> list[str]:
    """Complete the name of an API or a message."""
    from kafkawire.messages import REGISTRY

    return _beginning(incomplete, [*api_names(), *(info.name for info in REGISTRY)])


def complete_captured(incomplete: str) -> list[str]:
    """Complete the name of a request or response."""
    return _beginning(incomplete, captured_messages())


def complete_table(incomplete: str) -> list[str]:
    """Complete the name of a table."""
    from kafkawire.capture.tables import TABLES

    return _beginning(incomplete, TABLES)


def complete_release(incomplete: str) -> list[str]:
    """Complete a Kafka release."""
    from kafkawire.broker.releases import releases

    return _beginning(incomplete, releases())


def _beginning(incomplete: str, known: Iterable[str]) -> list[str]:
    return sorted({name for name in known if name.startswith(incomplete)})
