"""What the verbs for live clusters share: where the cluster is, settings, and errors for people.

Law: a setting that is wrong is a usage error (exit code 2); a cluster that cannot be reached or
refuses is exit code 1, in one line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafkawire.escaping import printable

if TYPE_CHECKING:
    from kafkawire.client.config import Key
    from kafkawire.net.admin import Admin

    from ..render.report import Section

CLUSTER: Final = "--bootstrap-server"
BootstrapOption = Annotated[
    str,
    typer.Option(CLUSTER, "-b", metavar="HOST:PORT,...", help="Brokers to begin with."),
]
CapturesOption = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FILE...", help="Captures, read as one; directories of them; - for stdin."
    ),
]
"""Of verbs that are about captures, or with `ClusterOption` about a cluster."""
ClusterOption = Annotated[
    str | None,
    typer.Option(CLUSTER, "-b", metavar="HOST:PORT,...", help="A live cluster: its brokers."),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="KEY=VALUE", help="A client's setting, by Kafka's name."
    ),
]
PATIENCE: Final = {"default.api.timeout.ms": 10_000, "max.block.ms": 10_000}
"""A person waits less long than a program does."""


def settings(
    bootstrap: str, given: list[str] | None, keys: Mapping[str, Key], **more: Any
) -> dict[str, Any]:
    """Put settings together; `KEY=VALUE` may be given for any of `keys`, and goes before `more`,
    whose names have `_` for dots.
    """
    found: dict[str, Any] = {key: value for key, value in PATIENCE.items() if key in keys}
    found |= {name.replace("_", "."): value for name, value in more.items() if value is not None}
    found |= pairs(given, "--option")
    return found | {"bootstrap.servers": bootstrap}


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """Read KEY=VALUE pairs."""
    found: dict[str, str] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint=option)
        found[key.strip()] = value
    return found


def asking(config: Mapping[str, Any]) -> Admin:
    """Make the admin client that goes with a consumer: with those of its settings that it takes."""
    from kafkawire.net.admin import ADMIN_KEYS, Admin

    return Admin({key: value for key, value in config.items() if key in ADMIN_KEYS})


def is_live(
    context: typer.Context,
    given: list[str] | None,
    bootstrap: str | None,
    captures_only: Iterable[str],
) -> bool:
    """Say whether a verb is about a cluster, not about captures; usage errors for both, neither,
    and an option that belongs to the other.
    """
    if bootstrap is None and not given:
        raise typer.BadParameter(
            f"give captures, or a cluster with {CLUSTER} HOST:PORT", param_hint="FILE..."
        )
    if bootstrap is not None and given:
        raise typer.BadParameter(f"{given[0]}: captures or a cluster, not both", param_hint=CLUSTER)
    options = {each.name: each.opts[0] for each in context.command.params if each.name is not None}
    everywhere = {"given", "form", "wanted"}
    of_captures = {*captures_only}
    wrong = of_captures if bootstrap is not None else options.keys() - of_captures - everywhere
    for name in sorted(wrong):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            whose = "captures" if bootstrap is not None else f"a cluster ({CLUSTER})"
            raise typer.BadParameter(f"is about {whose}", param_hint=options[name])
    return bootstrap is not None


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; an error of the client becomes a line on stderr and an exit code."""
    from kafkawire.client.failures import ClientError, ConfigurationError
    from kafkawire.errors import LocalProtocolError

    try:
        asyncio.run(work())
    except ConfigurationError as error:
        hint = CLUSTER if error.key == "bootstrap.servers" else "--option"
        raise typer.BadParameter(str(error), param_hint=hint) from None
    except (ClientError, LocalProtocolError) as error:
        typer.echo(printable(f"kafkawire: {error}"), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def print_json(made: dict[str, Any]) -> None:
    """Print a report for programs."""
    import json

    print(json.dumps(made, indent=2))


def print_sections(sections: Iterable[Section]) -> None:
    """Print a report for people."""
    from ..render.report import print_sections

    print_sections(sections)
