"""What the verbs for live clusters share: where the cluster is, settings, and errors for people.

Law: a setting that is wrong is a usage error (exit code 2); a cluster that cannot be reached or
refuses is exit code 1, in one line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

BootstrapOption = Annotated[
    str,
    typer.Option("--bootstrap", "-b", metavar="HOST:PORT,...", help="Brokers to begin with."),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", "-X", metavar="KEY=VALUE", help="A client setting under Kafka's name."),
]


def settings(bootstrap: str, given: list[str] | None) -> dict[str, Any]:
    """Put settings together; `KEY=VALUE` may be given for any that the client takes."""
    found: dict[str, Any] = {"bootstrap.servers": bootstrap}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
        found[key.strip()] = value
    return found


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; an error of the client becomes a line on stderr and an exit code."""
    from kafkawire.client.failures import ClientError, ConfigurationError

    try:
        asyncio.run(work())
    except ConfigurationError as error:
        raise typer.BadParameter(str(error), param_hint="--set") from None
    except ClientError as error:
        typer.echo(f"kafkawire: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
