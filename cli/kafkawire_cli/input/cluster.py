"""Options, settings and error handling of the verbs for live clusters.

Law: an invalid setting is a usage error (exit code 2); an unreachable cluster or an error response
is one line on standard error and exit code 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafkawire.display import printable

from .options import ReportOptions, pairs

if TYPE_CHECKING:
    from kafkawire.client.config import Key
    from kafkawire.net.admin import Admin

CLUSTER: Final = "--bootstrap-server"
BootstrapOption = Annotated[
    str,
    typer.Option(CLUSTER, "-b", metavar="HOST:PORT,...", help="Bootstrap servers."),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        CLUSTER,
        "-b",
        metavar="HOST:PORT,...",
        help="Bootstrap servers of a live cluster, instead of captures.",
    ),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-X", metavar="KEY=VALUE", help="Client configuration property; repeatable."
    ),
]
TIMEOUTS: Final = {
    "default.api.timeout.ms": 10_000,
    "max.block.ms": 10_000,
    "bootstrap.timeout.ms": 1_200,
}
"""Timeouts for interactive use, shorter than Kafka's defaults."""


def settings(
    bootstrap: str, options: list[str] | None, keys: Mapping[str, Key], **more: Any
) -> dict[str, Any]:
    """Build the configuration of a client.

    `--option KEY=VALUE` overrides `more`, whose names have `_` in place of dots.
    """
    found: dict[str, Any] = {key: value for key, value in TIMEOUTS.items() if key in keys}
    found |= {name.replace("_", "."): value for name, value in more.items() if value is not None}
    found |= pairs(options, "--option")
    return found | {"bootstrap.servers": bootstrap}


def admin(bootstrap: str | None, options: list[str] | None) -> Admin:
    """Create an admin client; an unknown property in `--option` is a usage error."""
    from kafkawire.net.admin import ADMIN_KEYS, Admin

    return Admin(settings(bootstrap or "", options, ADMIN_KEYS))


def admin_client(config: Mapping[str, Any]) -> Admin:
    """Create an admin client from those settings of `config` that it knows."""
    from kafkawire.net.admin import ADMIN_KEYS, Admin

    return Admin({key: value for key, value in config.items() if key in ADMIN_KEYS})


def is_live(
    context: typer.Context,
    captures: list[str] | None,
    bootstrap: str | None,
    *captures_only: str,
) -> bool:
    """Return whether a verb shall query a cluster rather than captures.

    Both, neither, or an option of the other are usage errors. captures_only: parameters that are
    only allowed with captures, besides those of every report.
    """
    if bootstrap is None and not captures:
        raise typer.BadParameter(
            f"expected captures, or a cluster with {CLUSTER} HOST:PORT", param_hint="FILE..."
        )
    if bootstrap is not None and captures:
        raise typer.BadParameter("not allowed together with captures", param_hint=CLUSTER)
    options = {each.name: each.opts[0] for each in context.command.params if each.name is not None}
    common = {"given", "form", "wanted"}
    of_captures = {*ReportOptions._fields, *captures_only} - common
    wrong = of_captures if bootstrap is not None else options.keys() - of_captures - common
    for name in sorted(wrong):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            subject = "captures" if bootstrap is not None else f"a cluster ({CLUSTER})"
            raise typer.BadParameter(f"only allowed with {subject}", param_hint=options[name])
    return bootstrap is not None


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine; errors of the client become one line on stderr and an exit code."""
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
