"""`kafkawire fuzz`: sends a broker requests that are valid, at the boundaries or broken."""

from __future__ import annotations

import secrets
from typing import Annotated, Final

import typer

from kafkawire import ApiKey
from kafkawire.client.config import read_config
from kafkawire.conformance.connection import Target
from kafkawire.fuzz.run import Finding, Report, Settings, run
from kafkawire.net.admin import ADMIN_KEYS

from ...input import cluster as live
from ...input.cluster import NO_OPTIONS, ClusterOptions
from ...input.names import message_of
from ...input.options import Form, FormOption
from ...render.fuzz.page import page
from ...render.fuzz.sections import as_json, finding_section, sections
from ...render.report import print_report, print_sections
from .conformance import AddressArgument, CapturesOption, PageOption, cluster_of

PREFIX: Final = "kafkawire-fuzz"
SEEDS: Final = 1 << 32


def fuzz(  # noqa: PLR0913 - one argument per option
    address: AddressArgument = None,
    options: ClusterOptions = NO_OPTIONS,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="What all requests derive from [default: random]."),
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of requests.")] = 1000,
    start: Annotated[
        int, typer.Option(min=0, help="Number of the first request, to replay some.")
    ] = 0,
    api: Annotated[
        list[str] | None,
        typer.Option(
            metavar="API",
            help="Only this API, by name or key, also one that changes the cluster; repeatable.",
            show_default=False,
        ),
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Send APIs that change the cluster, too.")
    ] = False,
    prefix: Annotated[
        str, typer.Option(help="Prefix of the topics, groups and transactional ids.")
    ] = PREFIX,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds until a response is overdue.")
    ] = 10.0,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests per second, at most; 0: no limit.")
    ] = 0.0,
    shrinking: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds to make the request of each finding smaller."),
    ] = 60.0,
    captures: CapturesOption = None,
    output: PageOption = None,
    form: FormOption = Form.TABLE,
) -> None:
    """Send a broker valid and broken requests, and judge what it does.

    Topics, groups and transactional ids begin with the prefix and the seed; they are deleted
    afterwards. APIs that change brokers, users, permissions or quotas are left out. A finding is
    written as soon as its request is as small as it gets.

    \b
    kafkawire fuzz localhost:9092
    kafkawire fuzz localhost:9092 --seed 7 --count 100000 --captures findings/
    kafkawire fuzz localhost:9092 --seed 7 --start 4711 --count 1
    kafkawire fuzz localhost:9092 -o fuzz.html

    Exit code 0: nothing wrong; 1: findings, or the broker cannot be reached; 2: usage error.
    """
    client = cluster_of(address, options)
    apis = None if api is None else frozenset(_key(each) for each in api)
    settings = Settings(
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        count=count,
        start=start,
        prefix=prefix,
        apis=apis,
        unsafe=unsafe,
        rate=rate,
        shrinking_s=shrinking,
        captures=captures,
    )
    if captures is not None:
        captures.mkdir(parents=True, exist_ok=True)
    reports: list[Report] = []

    def show(finding: Finding) -> None:
        if form is Form.TABLE:
            print_sections([finding_section(settings, finding)])
            print(flush=True)

    async def work() -> None:
        async with live.admin(client.values) as admin:
            await admin.describe_cluster()  # names what hinders a connection
            target = Target(read_config(ADMIN_KEYS, client.values), timeout)
            reports.append(await run(target, admin, settings, on_finding=show))

    live.run(work, client)
    [report] = reports
    print_report(form, lambda: sections(report), lambda: as_json(report))
    if output is not None:
        output.write_text(page(as_json(report)), "utf-8")
    if report.findings:
        raise typer.Exit(1)


def _key(name: str) -> ApiKey:
    """Return the API of a name or key. Raises typer.BadParameter."""
    key = message_of(name, "request", None).api_key
    assert key is not None
    return ApiKey(key)
