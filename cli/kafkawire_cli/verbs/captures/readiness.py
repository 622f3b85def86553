"""`kafkawire readiness`: finds clients that are incompatible with a Kafka release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kafkawire.display import plural

from ...input.names import complete_release, known_release, releases_of_kafka
from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render.report import Section, count_text, print_capture_report, top
from ...render.sections import client_name

if TYPE_CHECKING:
    from kafkawire.reports.readiness import Judgement, Verdict


NOBODY: Final = "No clients found."


def readiness(
    files: Files,
    target: Annotated[
        str,
        typer.Option(
            metavar="RELEASE",
            help="The Kafka release to upgrade to, such as 4.0.",
            autocompletion=complete_release,
        ),
    ],
    options: ReportOptions = DEFAULTS,
) -> None:
    """Find clients that are incompatible with a Kafka release.

    \b
    kafkawire readiness trace*.pcap --target 4.0
    kafkawire readiness trace.pcap --target 4.0 --format json | jq '.not_ready[].client_id'

    Exit code 0: all clients that could be checked are ready; 1: some are not; 2: usage error.
    """
    releases = releases_of_kafka()
    release = known_release(target, releases)
    bound = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.clients import Clients
        from kafkawire.reports.readiness import judge

        clients = Clients()
        captures.read(clients)
    judgement = judge(clients, releases, release)
    print_capture_report(
        captures,
        options.form,
        lambda: _sections(judgement, release, bound),
        lambda: _json(judgement, release, bound),
        NOBODY,
    )
    if judgement.not_ready:
        raise typer.Exit(1)


def _sections(judgement: Judgement, release: str, most: int | None) -> list[Section]:
    ready, judged = len(judgement.ready), len(judgement.ready) + len(judgement.not_ready)
    verdict = _verdict(ready, judged, len(judgement.unjudged), release)
    not_ready, unjudged = top(judgement.not_ready, most), top(judgement.unjudged, most)
    shown = top(judgement.ready, most)
    offers = any(call.offered is not None for one in not_ready.first for call in one.refused)
    calls = [
        (
            *_who(one),
            f"{call.name} v{call.version}",
            count_text(call.requests),
            "not supported" if call.takes is None else f"v{call.takes}",
            *(("" if call.offered is None else f"up to v{call.offered}",) if offers else ()),
        )
        for one in not_ready.first
        for call in one.refused
    ]
    who = "client id", "software", "address"
    head = (
        *who,
        "uses",
        ">requests",
        f"{release} supports",
        *(("broker supports",) if offers else ()),
    )
    lines = (*not_ready.more("client"), *_notes(judgement))
    return [
        Section("", lines=(verdict,)),
        Section("Not ready", head, calls, lines, ("requests", "address", "software")),
        Section("Ready", who, [_who(one) for one in shown.first], shown.more("client")),
        Section(
            "Not checked",
            (*who, "reason"),
            [(*_who(one), one.reason) for one in unjudged.first],
            unjudged.more("client"),
        ),
    ]


def _verdict(ready: int, judged: int, unjudged: int, release: str) -> str:
    if not judged and not unjudged:
        return NOBODY
    verdict = f"{ready} of {plural(judged, 'client')} ready for Kafka {release}"
    return f"{verdict}; {unjudged} could not be checked" if unjudged else verdict


def _notes(judgement: Judgement) -> tuple[str, ...]:
    """Point out findings that an old broker may cause."""
    if not any(call.bound for verdict in judgement.not_ready for call in verdict.refused):
        return ()
    return (
        "If the current broker supports none of these versions, the client may support them but be "
        "unable to use them: check the version of its software.",
    )


def _who(verdict: Verdict) -> tuple[str, str, str]:
    client = verdict.client
    return client_name(client), str(client.software or ""), client.address


def _json(judgement: Judgement, release: str, most: int | None) -> dict[str, Any]:
    not_ready, unjudged = top(judgement.not_ready, most), top(judgement.unjudged, most)
    ready = top(judgement.ready, most)
    return {
        "target": release,
        "ready": not judgement.not_ready,
        "not_ready": [
            {**one.client.who(), "calls": [call.json() for call in one.refused]}
            for one in not_ready.first
        ],
        "ready_clients": [one.client.who() for one in ready.first],
        "not_judged": [{**one.client.who(), "reason": one.reason} for one in unjudged.first],
        "left_out": {
            "not_ready": not_ready.left_out,
            "ready_clients": ready.left_out,
            "not_judged": unjudged.left_out,
        },
    }
