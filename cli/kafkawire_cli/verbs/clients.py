"""`kafkawire clients`: the clients in captures, their software and their requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..input.sources import (
    AllOption,
    BrokerOption,
    Files,
    Form,
    FormOption,
    PortOption,
    Shown,
    TopOption,
    limit,
    reading,
    show,
    top,
)
from ..render.report import Section, bytes_text, count_text, list_text, ranges_text

if TYPE_CHECKING:
    from kafkawire.reports.clients import Client, Clients, UndecodedConnections

MAX_APIS: Final = 50
"""APIs listed per client."""


def clients(
    given: Files,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show clients: software, address, requests.

    \b
    kafkawire clients trace*.pcap
    kafkawire clients trace.pcap --format json | jq '.clients[] | {client_id, software_name}'

    A client is a combination of client id, address and software. The clients with the most
    requests come first.
    """
    bound = limit(most, every, form)
    with reading("clients", given, port, broker) as captures:
        from kafkawire.reports.clients import Clients

        collector = Clients()
        captures.read(collector)
    shown = top(busiest(collector.all), bound)

    def sections() -> list[Section]:
        return [overview(shown), *map(details, shown.first), unread(collector, bound)]

    def as_json() -> dict[str, Any]:
        not_read = top(collector.undecoded.most_common(), bound)
        return {
            "clients": [client.json() for client in shown.first],
            "left_out": shown.left_out,
            "unread": unread_json(not_read),
            "unread_left_out": not_read.left_out,
        }

    show(captures, form, sections, as_json)


def busiest(found: list[Client]) -> list[Client]:
    """Sort clients by number of requests, most first."""
    return sorted(found, key=lambda client: -client.requests)


def name(client: Client) -> str:
    """Return the client id for display."""
    return "(no client id)" if client.client_id is None else client.client_id or '""'


def overview(shown: Shown[Client], *, sizes: bool = True) -> Section:
    """List the clients. sizes: with bytes sent and received."""
    head = (
        "client id", "software", "address", ">conns", ">requests", ">errors", ">sent", ">received",
    )  # fmt: skip
    rows = [
        (
            name(client),
            str(client.software or ""),
            client.address,
            count_text(client.connections),
            count_text(client.requests),
            count_text(client.errors),
            bytes_text(client.request_bytes),
            bytes_text(client.response_bytes),
        )[: None if sizes else -2]
        for client in shown.first
    ]
    return Section("Clients", head[: None if sizes else -2], rows, shown.more("clients"))


def details(client: Client) -> Section:
    """Show one client in detail."""
    facts = {
        "software": str(client.software or "unknown"),
        "brokers": list_text(client.brokers, 8),
        "SASL": list_text(client.mechanisms),
        "groups": list_text(client.groups, 8),
        "requests": list_text(
            (f"{api} v{ranges_text(used)}" for api, used in client.apis().items()), MAX_APIS
        ),
    }
    lines = [f"{label + ':':9} {text}" for label, text in facts.items() if text]
    return Section(f"{name(client)} at {client.address}", lines=lines)


def unread(collector: Clients, most: int | None) -> Section:
    """List the connections in which no request was decoded."""
    shown = top(collector.undecoded.most_common(), most)
    rows = [(one.address, one.broker, count_text(n), one.reason) for one, n in shown.first]
    head = ("from", "to", ">connections", "reason")
    return Section("Not decoded", head, rows, shown.more("lines"))


def unread_json(shown: Shown[tuple[UndecodedConnections, int]]) -> list[dict[str, object]]:
    """Return the connections in which no request was decoded, as JSON."""
    return [{**one._asdict(), "connections": count} for one, count in shown.first]
