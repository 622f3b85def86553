"""Options of `serve` for one node that has its files on disk.

An option that a node does not have is a usage error, never ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kafkawire.whole_numbers import MAX_INT32, whole_number

from .panels import Panel

if TYPE_CHECKING:
    from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
    from kafkawire.net.nodes.start import Controller, NodeOptions
    from kafkawire.net.server_config import ServerConfig

ID: Final = "--node-id"
CONTROLLERS: Final = "--controllers"
DIRECTORY: Final = "--data-dir"
CLUSTER: Final = "--cluster-id"
SCRAM: Final = "--add-scram"
LOG_DIRS: Final = "log.dirs"


class NodeChoice(NamedTuple):
    """Which node to run, if it is one."""

    data_dir: Annotated[
        list[Path] | None,
        typer.Option(
            DIRECTORY,
            metavar="DIR",
            help="Run one node that has its files in this directory; several of them with more.",
            rich_help_panel=Panel.NODE,
        ),
    ] = None
    node_id: Annotated[
        int | None,
        typer.Option(
            ID,
            min=0,
            max=2**31 - 1,
            metavar="N",
            help="Id of that node [default: as in DIR, or 1].",
            show_default=False,
            rich_help_panel=Panel.NODE,
        ),
    ] = None
    controllers: Annotated[
        str | None,
        typer.Option(
            CONTROLLERS,
            metavar="HOST:PORT,...",
            help="Controllers of its cluster, nodes 1, 2, ..., or as ID@HOST:PORT "
            "[default: that node alone].",
            show_default=False,
            rich_help_panel=Panel.NODE,
        ),
    ] = None
    cluster_id: Annotated[
        str | None,
        typer.Option(
            CLUSTER,
            metavar="ID",
            help="Id of its cluster [default: that in DIR; in a new DIR a random one, or one that "
            "follows from --controllers].",
            show_default=False,
            rich_help_panel=Panel.NODE,
        ),
    ] = None
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            SCRAM,
            metavar="MECHANISM=[name=NAME,password=PASSWORD]",
            help="SCRAM credential that a new cluster begins with, as of kafka-storage format, "
            "for each of its controllers; repeatable.",
            show_default=False,
            rich_help_panel=Panel.NODE,
        ),
    ] = None


def node_options(choice: NodeChoice, config: ServerConfig) -> NodeOptions:
    """Return the options of a node; it has a directory. config: the other options of the verb."""
    if not choice.data_dir:
        options = zip((ID, CONTROLLERS, CLUSTER, SCRAM), choice[1:], strict=True)
        name = next(name for name, value in options if value not in (None, []))
        raise typer.BadParameter(f"only allowed with {DIRECTORY}", param_hint=name)
    from kafkawire.net.nodes.start import NodeOptions

    controllers = _controllers(choice.controllers) if choice.controllers is not None else ()
    if LOG_DIRS in config.settings:
        reason = f"{LOG_DIRS} is set by {DIRECTORY}, once for each directory"
        raise typer.BadParameter(reason, param_hint="--set")
    directories = tuple(choice.data_dir)
    if len({each.resolve() for each in directories}) < len(directories):
        raise typer.BadParameter("the same directory twice", param_hint=DIRECTORY)
    credentials = _scram_credentials(choice.add_scram or [], config.release)
    return NodeOptions(
        choice.node_id, directories, config, controllers, choice.cluster_id, credentials
    )


def _scram_credentials(values: list[str], release: str) -> tuple[UserScramCredentialRecord, ...]:
    from random import SystemRandom

    from kafkawire.broker.security.scram import SALT_SIZE
    from kafkawire.node.quorum.add_scram import scram_credentials

    rng = SystemRandom()
    try:
        return scram_credentials(values, release, lambda: rng.randbytes(SALT_SIZE))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=SCRAM) from None


def _controllers(text: str) -> tuple[Controller, ...]:
    from kafkawire.client.config import address
    from kafkawire.net.nodes.start import Controller

    controllers: dict[int, Controller] = {}
    with_ids = "@" in text
    for position, part in enumerate(text.split(","), 1):
        digits, _, rest = part.strip().rpartition("@")
        number = whole_number(digits, MAX_INT32) if with_ids else position
        if number is None:
            raise typer.BadParameter(
                f"invalid controller {part.strip()!r}: expected ID@HOST:PORT",
                param_hint=CONTROLLERS,
            )
        try:
            host, port = address(rest)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=CONTROLLERS) from None
        if number in controllers:
            raise typer.BadParameter(f"node {number} twice", param_hint=CONTROLLERS)
        controllers[number] = Controller(number, host, port)
    return tuple(controllers[number] for number in sorted(controllers))
