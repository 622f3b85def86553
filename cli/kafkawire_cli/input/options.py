"""Declares the options that several verbs have.

An option has the same names and help in every verb. A group of options that verbs have in
common is a NamedTuple, which `registry.flattened` replaces by its fields.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from .filters import FilterOption
from .panels import Panel


class Form(StrEnum):
    """Output formats of a report."""

    TABLE = "table"
    JSON = "json"


class Compression(StrEnum):
    """Codecs of Parquet files."""

    ZSTD = "zstd"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    NONE = "none"


CompressionOption = Annotated[
    Compression | None,
    typer.Option(
        "--compression",
        help="With --table: compression of .parquet files [default: zstd].",
        show_default=False,
        rich_help_panel=Panel.TABLES,
    ),
]
FormOption = Annotated[
    Form, typer.Option("--format", "-f", help="Output format.", rich_help_panel=Panel.OUTPUT)
]
ROW_FORMAT: Final = typer.Option(
    "--format",
    "-f",
    help="Output format [default: table on a terminal, else jsonl].",
    show_default=False,
    rich_help_panel=Panel.OUTPUT,
)
PortOption = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=65535,
        metavar="PORT",
        help="Port of brokers, besides those where Kafka is detected. To select: --filter. "
        "Repeatable.",
        show_default=False,
        rich_help_panel=Panel.CAPTURES,
    ),
]
BrokerOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Broker address, as with --port; repeatable.",
        rich_help_panel=Panel.CAPTURES,
    ),
]
KeyLogOption = Annotated[
    Path | None,
    typer.Option(
        "--keylog",
        metavar="FILE",
        help="TLS key log (SSLKEYLOGFILE) for decryption.",
        rich_help_panel=Panel.CAPTURES,
    ),
]
TunnelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tunnel",
        metavar="TUNNEL:PORT",
        help="Tunnel on a UDP port other than its own, vxlan:14789; repeatable.",
        show_default=False,
        rich_help_panel=Panel.CAPTURES,
    ),
]
RedactOption = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Replace keys and values of records by sizes and hashes.",
        rich_help_panel=Panel.OUTPUT,
    ),
]
SecretsOption = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Show tokens, passwords, keys and secret configs.",
        rich_help_panel=Panel.OUTPUT,
    ),
]
CAPTURES: Final = typer.Argument(
    metavar="FILE...", help="Capture files or directories, read as one capture; - for stdin."
)
Files = Annotated[list[str], CAPTURES]
OptionalFiles = Annotated[list[str] | None, CAPTURES]
"""Captures, for verbs that also take a cluster."""

SHOWN: Final = 10
"""Entries of a list shown as text, without --top and --all."""


MostOption = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        metavar="N",
        help="Show at most N entries of each list [default: 10; all with --format json].",
        show_default=False,
        rich_help_panel=Panel.OUTPUT,
    ),
]
EveryOption = Annotated[
    bool,
    typer.Option("--all", help="Show all entries of each list.", rich_help_panel=Panel.OUTPUT),
]


def entries_shown(most: int | None, form: Form, *, every: bool) -> int | None:
    """Return the number of entries of each list to show; None for all."""
    if every and most is not None:
        raise typer.BadParameter("not allowed together with --top", param_hint="--all")
    if every or (most is None and form is Form.JSON):
        return None
    return SHOWN if most is None else most


class ReportOptions(NamedTuple):
    """Options of every report on captures."""

    most: MostOption = None
    every: EveryOption = False
    form: FormOption = Form.TABLE
    filters: FilterOption = None
    port: PortOption = None
    broker: BrokerOption = None
    keylog: KeyLogOption = None
    tunnel: TunnelOption = None

    def limit(self) -> int | None:
        """Return the number of entries of each list to show; None for all."""
        return entries_shown(self.most, self.form, every=self.every)


DEFAULTS: Final = ReportOptions()


def pairs(arguments: list[str] | None, option: str, expected: str = "KEY=VALUE") -> dict[str, str]:
    """Parse the arguments of an option that takes pairs. expected: their form."""
    separator = ":" if ":" in expected else "="
    parsed: dict[str, str] = {}
    for text in arguments or []:
        key, separated, value = text.partition(separator)
        if not separated or not key.strip():
            raise typer.BadParameter(f"{text!r}: expected {expected}", param_hint=option)
        parsed[key.strip()] = value
    return parsed
