"""`kafkawire clients`: the clients in captures, their software and their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render import sections as sections_of
from ...render.report import print_capture_report, top
from ...render.sections import ClientOrder

if TYPE_CHECKING:
    from ...render.report import Section


def clients(
    files: Files,
    options: ReportOptions = DEFAULTS,
    sort: Annotated[ClientOrder, typer.Option(help="Sort clients by this.")] = ClientOrder.HARM,
) -> None:
    """Show clients: software, address, requests.

    \b
    kafkawire clients trace*.pcap
    kafkawire clients trace.pcap --format json | jq '.clients[] | {client_id, software_name}'

    A client is a combination of client id, address and software. By harm, the clients with the
    most errors come first, those left out that are normal in the protocol; then those with the most
    requests.
    """
    bound = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.clients import Clients

        collector = Clients()
        captures.read(collector)
    shown = top(sections_of.sorted_clients(collector.all, sort), bound)

    def sections() -> list[Section]:
        return [
            sections_of.clients(shown),
            *map(sections_of.client_details, shown.first),
            sections_of.undecoded(collector, bound),
        ]

    def as_json() -> dict[str, Any]:
        not_read = top(collector.undecoded.most_common(), bound)
        return {
            "clients": [client.json() for client in shown.first],
            "left_out": shown.left_out,
            "unread": sections_of.undecoded_json(not_read),
            "unread_left_out": not_read.left_out,
        }

    print_capture_report(captures, options.form, sections, as_json, "No clients found.")
