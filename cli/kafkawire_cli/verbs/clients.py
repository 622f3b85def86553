"""`kafkawire clients`: who speaks to the brokers, with which software, and how."""

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

CALLS: Final = 50
"""APIs that a client is said to call."""


def clients(
    given: Files,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show clients: software, address, calls.

    \b
    kafkawire clients trace*.pcap
    kafkawire clients trace.pcap --format json | jq '.clients[] | {client_id, software_name}'

    A client is a client id at an address with a software; the busiest come first.
    """
    bound = limit(most, every, form)
    with reading("clients", given, port, broker) as captures:
        from kafkawire.reports.clients import Clients

        tally = Clients()
        captures.read(tally)
    shown = top(busiest(tally.all), bound)

    def sections() -> list[Section]:
        return [overview(shown), *map(details, shown.first), unread(tally, bound)]

    def made() -> dict[str, Any]:
        not_read = top(tally.undecoded.most_common(), bound)
        return {
            "clients": [client.json() for client in shown.first],
            "left_out": shown.left_out,
            "unread": unread_json(not_read),
            "unread_left_out": not_read.left_out,
        }

    show(captures, form, sections, made)


def busiest(found: list[Client]) -> list[Client]:
    """Sort clients by their requests."""
    return sorted(found, key=lambda client: -client.requests)


def name(client: Client) -> str:
    """Say what to call a client."""
    return "(no client id)" if client.client_id is None else client.client_id or '""'


def overview(shown: Shown[Client], *, sizes: bool = True) -> Section:
    """Make the list of clients. sizes: what they sent and received too."""
    head = (
        "client id", "software", "address", ">conns", ">calls", ">errors", ">sent", ">received",
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
    """Say all that is known of a client."""
    said = {
        "software": str(client.software or "not told"),
        "brokers": list_text(client.brokers, 8),
        "SASL": list_text(client.mechanisms),
        "groups": list_text(client.groups, 8),
        "calls": list_text(
            (f"{api} v{ranges_text(used)}" for api, used in client.apis().items()), CALLS
        ),
    }
    lines = [f"{label + ':':9} {text}" for label, text in said.items() if text]
    return Section(f"{name(client)} at {client.address}", lines=lines)


def unread(tally: Clients, most: int | None) -> Section:
    """Make the list of connections of which no request was read."""
    shown = top(tally.undecoded.most_common(), most)
    rows = [(one.address, one.broker, count_text(n), one.reason) for one, n in shown.first]
    head = ("from", "to", ">connections", "why")
    return Section("Not read", head, rows, shown.more("lines"))


def unread_json(shown: Shown[tuple[UndecodedConnections, int]]) -> list[dict[str, object]]:
    """Make the list of connections of which no request was read, as JSON."""
    return [{**one._asdict(), "connections": count} for one, count in shown.first]
