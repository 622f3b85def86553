"""`kafkawire conformance`: checks whether a broker behaves as Apache Kafka."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Final

import typer

from kafkawire.client.config import read_config
from kafkawire.conformance.behaviour import Feature
from kafkawire.conformance.behaviours import ALL
from kafkawire.conformance.connection import Target
from kafkawire.conformance.run import Outcome, Result, run
from kafkawire.display import plural, printable
from kafkawire.net.admin import ADMIN_KEYS

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.options import Form, FormOption
from ...notes import print_note
from ...render.conformance.page import page
from ...render.conformance.sections import as_json, sections
from ...render.report import print_report

PREFIX: Final = "kafkawire-conformance"


AddressArgument = Annotated[
    str | None,
    typer.Argument(metavar="[HOST:PORT,...]", help="Bootstrap servers, as with -b."),
]
CapturesOption = Annotated[
    Path | None,
    typer.Option(
        "--captures",
        metavar="FOLDER",
        file_okay=False,
        help="Write the packets of each failure into this folder.",
    ),
]


def cluster_of(address: str | None, options: ClusterOptions) -> live.Configuration:
    """Return the configuration of a client, whose bootstrap servers may be an argument."""
    if address is not None and options.bootstrap is not None:
        raise typer.BadParameter("not allowed together with HOST:PORT", param_hint=live.CLUSTER)
    return live.admin_configuration(
        options if address is None else options._replace(bootstrap=address)
    )


def conformance(
    address: AddressArgument = None,
    options: ClusterOptions = NO_OPTIONS,
    feature: Annotated[
        list[Feature] | None,
        typer.Option(help="Only behaviours of this feature; repeatable.", show_default=False),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="Prefix of the topics, groups and transactional ids.")
    ] = PREFIX,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a response is overdue.")
    ] = 15.0,
    captures: CapturesOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write a page in HTML, too."),
    ] = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Check whether a broker behaves as Apache Kafka.

    Every behaviour is checked in each version of its API that the broker offers. Topics, groups and
    transactional ids of the checks begin with the prefix; they are deleted afterwards.

    \b
    kafkawire conformance localhost:9092
    kafkawire conformance localhost:9092 --feature transactions --captures failures/
    kafkawire conformance localhost:9092 -o conformance.html

    Exit code 0: no check failed; 1: checks failed, or the broker cannot be reached; 2: usage error.
    """
    client = cluster_of(address, options)
    chosen = [each for each in ALL if each.feature in (feature or Feature)]
    if captures is not None:
        captures.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []

    async def work() -> None:
        async with live.admin(client.values) as admin:  # names what hinders a connection
            await admin.describe_cluster()
        target = Target(read_config(ADMIN_KEYS, client.values), timeout)
        names = f"{prefix}-{secrets.token_hex(4)}"
        results.extend(await run(target, chosen, names, captures))

    live.run(work, client)
    print_report(form, lambda: sections(results), lambda: as_json(results))
    if output is not None:
        output.write_text(page(results), "utf-8")
    left = [each for one in results for each in one.left]
    if left:
        note = printable(f"{plural(len(left), 'name')} could not be deleted: {', '.join(left)}")
        print_note(str(note))
    if any(each.outcome is Outcome.FAILED for each in results):
        raise typer.Exit(1)
