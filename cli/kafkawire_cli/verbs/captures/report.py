"""`kafkawire report`: a page with charts of what captures contain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kafkawire.display import printable

from ... import pipes
from ...input.filters import FilterOption
from ...input.inputs import InputError
from ...input.names import complete_release, known_release, latest_release, releases_of_kafka
from ...input.options import (
    BrokerOption,
    Files,
    KeyLogOption,
    PortOption,
    ReportOptions,
    SecretsOption,
    TunnelOption,
)
from ...input.panels import Panel
from ...input.rule_options import UNCHANGED, RuleOptions
from ...input.sources import check_output, readable, reading, refuse
from ...render.report import exit_if_incomplete

if TYPE_CHECKING:
    from ...render.page.data import PageData


STDOUT: Final = "-"


def report(  # noqa: PLR0913 - options of the verb
    files: Files,
    to: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page to write; - for standard output.",
            rich_help_panel=Panel.OUTPUT,
        ),
    ] = Path("report.html"),
    target: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="Kafka release that clients are checked against [default: the latest].",
            show_default=False,
            autocompletion=complete_release,
        ),
    ] = None,
    show_secrets: SecretsOption = False,
    rules: RuleOptions = UNCHANGED,
    wanted: FilterOption = None,
    port: PortOption = None,
    broker: BrokerOption = None,
    keylog: KeyLogOption = None,
    tunnel: TunnelOption = None,
) -> None:
    """Write a page with charts: traffic, latency, errors, groups.

    \b
    kafkawire report trace*.pcap -o report.html
    kafkawire report trace.pcap --target 4.0 --filter "client ~ 'billing*'"

    The page is one file and opens without network. Its charts need the package plotly:
    pip install 'kafkawire[report]'.
    """
    releases = releases_of_kafka()
    release = known_release(target or latest_release(releases), releases)
    check_output([to], [*files, keylog])
    from ...render.page.document import library

    charts = library()
    options = ReportOptions(filters=wanted, port=port, broker=broker, keylog=keylog, tunnel=tunnel)
    with reading(files, options) as captures:
        from ...render.messages import View
        from ...render.page.data import PageData, Target

        data = PageData(
            captures, View(secrets=show_secrets), Target(release, releases), rules.diagnosis
        )
        data.read()
    try:
        with readable(files, to):
            size = _write(to, data, files, charts, private=show_secrets)
    except InputError as error:
        refuse(error)
        raise typer.Exit(2) from None
    if str(to) != STDOUT:
        typer.echo(printable(f"{to}: {size / 1e6:.1f} MB"), err=True)
    exit_if_incomplete(captures)


def _write(to: Path, data: PageData, files: list[str], charts: str, *, private: bool) -> int:
    from kafkawire_codegen.whole_files import write_whole

    from ...render.page.document import document

    page = document(data.json(files), charts).encode()
    if str(to) == STDOUT:
        pipes.write(page)
        return len(page)
    return write_whole(to, page, private=private)
