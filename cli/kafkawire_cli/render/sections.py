"""Renders what reports on captures have in common: requests, topics and clients.

A section and the JSON form of a list contain the same entries in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kafkawire.display import bytes_text, plural, time_text

from .report import (
    Section,
    Shown,
    count_text,
    duration_text,
    list_text,
    milliseconds_text,
    ranges_text,
    share_text,
    top,
)

if TYPE_CHECKING:
    from kafkawire.reports.apis import Api, ApiTotals
    from kafkawire.reports.client import Client
    from kafkawire.reports.clients import Clients, UndecodedConnections
    from kafkawire.reports.exchanges import Unanswered
    from kafkawire.reports.topics import Amount, Topic

# -- requests


class By(StrEnum):
    """Keys to group requests by, in addition to the API."""

    API = "api"
    VERSION = "version"
    CLIENT = "client"
    BROKER = "broker"
    CONNECTION = "connection"


class ApiOrder(StrEnum):
    """Orders of requests by API; those that are equal are sorted by API key."""

    HARM = "harm"
    REQUESTS = "requests"
    ERRORS = "errors"
    UNANSWERED = "unanswered"
    LATENCY = "latency"
    API = "api"


WAITING: Final = {"Fetch": "data", "JoinGroup": "other members"}
"""APIs whose responses may be delayed, so that their latency is not that of the broker."""


def requests(
    shown: Shown[Api], noted: ApiTotals, by: By = By.API, *, longest: bool = True
) -> Section:
    """List requests by API. noted: notes on all requests."""
    grouped = by is not By.API
    requested = [one for one in shown.first if one.requests]
    unanswered = any(one.without_response for one in requested)
    rows = [
        (
            one.name,
            *((one.group or "",) if grouped else ()),
            count_text(one.requests),
            *((count_text(one.without_response),) if unanswered else ()),
            share_text(one.failure_rate),
            *(milliseconds_text(one.latency.at(share)) for share in (0.5, 0.95, 0.99)),
            *((milliseconds_text(one.latency.max),) if longest else ()),
        )
        for one in requested
    ]
    head = (
        "API",
        *((by.value,) if grouped else ()),
        ">requests",
        *((">no response",) if unanswered else ()),
        *(">errors", ">p50 ms", ">p95 ms", ">p99 ms"),
        *((">max ms",) if longest else ()),
    )
    lines = [*shown.more("row"), *_request_notes(noted)]
    return Section("Requests", head, rows, lines, ("p95 ms", "max ms", "p50 ms", "requests"))


def _request_notes(noted: ApiTotals) -> list[str]:
    notes = [
        f"{name} responses may wait for {what}."
        for name, what in WAITING.items()
        if name in noted.api_names
    ]
    count = noted.responses_without_request
    if count:
        notes.append(f"{plural(count, 'response')} without a request in the capture.")
    return [" ".join(notes)] if notes else []


def request_errors(apis: list[Api], most: int | None, by: By) -> list[Section]:
    """List the error codes in responses, by API: those that matter, then those that are normal."""
    from kafkawire.reports.expected import are_expected

    codes = [(one, *n) for one in apis for n in one.most_common_codes()]
    codes.sort(key=lambda entry: -entry[2])
    normal = [entry for entry in codes if are_expected(entry[0].api_key, [entry[1]])]
    others = [entry for entry in codes if not are_expected(entry[0].api_key, [entry[1]])]
    return [_codes("Errors", others, most, by), _codes("Normal errors", normal, most, by)]


def _codes(title: str, codes: list[tuple[Api, int, int]], most: int | None, by: By) -> Section:
    from kafkawire.protocol.error_code import ErrorCode

    grouped = by is not By.API
    shown = top(codes, most)
    rows = [
        (
            one.name,
            *((one.group or "",) if grouped else ()),
            ErrorCode.name_of(code),
            count_text(count),
        )
        for one, code, count in shown.first
    ]
    head = ("API", *((by.value,) if grouped else ()), "error code", ">responses")
    return Section(title, head, rows, shown.more("error"))


def unanswered(collector: Unanswered, most: int | None) -> Section:
    """List the requests without a response, those that waited longest first."""
    shown = top(collector.all, most)
    rows = [
        (
            one.api_name,
            one.client_id or "",
            one.client,
            one.broker,
            (time_text(one.time_ns) or "")[11:23],
            duration_text(one.waited_ns),
            f"{one.connection} (reset)" if one.reset else str(one.connection),
            f"{one.file}:{one.packet}",
        )
        for one in shown.first
    ]
    head = (
        "API", "client id", "client", "broker", "sent (UTC)", ">waited", "connection", "packet",
    )  # fmt: skip
    polls = (
        f"{plural(collector.polls, 'more request')} waited no longer than allowed when the "
        "connection ended."
    )
    lines = [*shown.more("request"), *([polls] if collector.polls and rows else [])]
    return Section("No response", head, rows, lines, ("packet", "broker", "client"))


def requests_json(apis: list[Api], by: By = By.API) -> list[dict[str, Any]]:
    """Return the requests by API as JSON."""
    return [{**one.json(), **({} if by is By.API else {by.value: one.group})} for one in apis]


# -- topics


def topics(shown: Shown[Topic]) -> Section:
    """List the topics with records and bytes produced and fetched.

    Produced records that were refused, and those without a response, have columns if there are any.
    """
    refused = any(topic.refused for topic in shown.first)
    unanswered = any(topic.unanswered for topic in shown.first)
    head = (
        *("topic", ">partitions", ">produced", ">bytes"),
        *((">refused",) if refused else ()),
        *((">no response",) if unanswered else ()),
        *(">fetched", ">bytes", "codecs"),
    )
    rows = [
        (
            topic.label,
            count_text(len(topic.partitions)),
            *produced,
            *((count_text(topic.refused),) if refused else ()),
            *((count_text(topic.unanswered),) if unanswered else ()),
            *fetched,
            ", ".join(codec for codec, _ in topic.codecs.most_common()),
        )
        for topic in shown.first
        for produced, fetched in (map(_amount, topic.directions.values()),)
    ]
    return Section("Topics", head, rows, shown.more("topic"), ("codecs", "partitions", "bytes"))


def _amount(direction: Amount) -> tuple[str, str]:
    """Format records and bytes of one direction."""
    return (
        count_text(direction.records),
        bytes_text(direction.bytes) if direction.bytes else "",
    )


# -- clients

MAX_APIS: Final = 50
"""APIs listed per client."""


class ClientOrder(StrEnum):
    """Orders of clients; those that are equal are sorted by client id."""

    HARM = "harm"
    REQUESTS = "requests"
    ERRORS = "errors"
    BYTES = "bytes"
    CONNECTIONS = "connections"


CLIENT_ORDERS: Final[dict[ClientOrder, Callable[[Client], tuple[int, ...]]]] = {
    ClientOrder.HARM: lambda client: (-client.failures, -client.requests),
    ClientOrder.REQUESTS: lambda client: (-client.requests,),
    ClientOrder.ERRORS: lambda client: (-client.errors,),
    ClientOrder.BYTES: lambda client: (-client.request_bytes - client.response_bytes,),
    ClientOrder.CONNECTIONS: lambda client: (-client.connections,),
}


def sorted_clients(
    clients_of_report: list[Client], order: ClientOrder = ClientOrder.HARM
) -> list[Client]:
    """Sort clients; by harm, those with errors that are not normal in the protocol come first."""
    return sorted(clients_of_report, key=CLIENT_ORDERS[order])


def client_name(client: Client) -> str:
    """Return the client id for display."""
    return "(no client id)" if client.client_id is None else client.client_id or '""'


def clients(shown: Shown[Client], *, sizes: bool = True) -> Section:
    """List the clients. sizes: with bytes sent and received."""
    head = (
        "client id", "software", "address", ">conns", ">requests", ">errors", ">sent", ">received",
    )  # fmt: skip
    rows = [
        (
            client_name(client),
            str(client.software or ""),
            client.address,
            count_text(client.connections),
            count_text(client.requests),
            count_text(client.failures),
            bytes_text(client.request_bytes),
            bytes_text(client.response_bytes),
        )[: None if sizes else -2]
        for client in shown.first
    ]
    optional = ("received", "sent", "conns", "software", "address")
    return Section("Clients", head[: None if sizes else -2], rows, shown.more("client"), optional)


def client_details(client: Client) -> Section:
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
    return Section(f"{client_name(client)} at {client.address}", lines=lines)


def undecoded(collector: Clients, most: int | None) -> Section:
    """List the connections in which no request was decoded."""
    shown = top(collector.undecoded.most_common(), most)
    rows = [(one.address, one.broker, count_text(n), one.reason) for one, n in shown.first]
    head = ("from", "to", ">connections", "reason")
    return Section("Not decoded", head, rows, shown.more("line"))


def undecoded_json(shown: Shown[tuple[UndecodedConnections, int]]) -> list[dict[str, object]]:
    """Return the connections in which no request was decoded, as JSON."""
    return [{**one._asdict(), "connections": count} for one, count in shown.first]
