"""`kafkawire latency`: response times and error rates of requests in captures."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

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
from ..render.report import Section, count_text, milliseconds_text, plural, share_text

if TYPE_CHECKING:
    from kafkawire.reports.apis import Api, ApiTotals


class By(StrEnum):
    """Keys to group requests by, in addition to the API."""

    API = "api"
    VERSION = "version"
    CLIENT = "client"
    BROKER = "broker"


MAX_APIS: Final = 100
"""Entries shown by default when grouped by API alone: more than there are APIs, but not every key
that malicious requests may contain.
"""

WAITING: Final = {"Fetch": "data", "JoinGroup": "other members"}
"""APIs whose responses may be delayed, so that their latency is not that of the broker."""


def latency(
    given: Files,
    by: Annotated[By, typer.Option(help="Group requests by API, and by this.")] = By.API,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show requests by API: counts, errors, latency.

    \b
    kafkawire latency trace*.pcap
    kafkawire latency trace.pcap --by client
    kafkawire latency trace.pcap --format json | jq '.calls[] | select(.p99_ns > 1e8)'

    Quantiles have an error of at most 1 %; the maximum is exact.
    """
    shown = limit(most, every, form)
    with reading("latency", given, port, broker) as captures:
        from kafkawire.reports.apis import Apis

        apis = Apis(by.value)
        captures.read(apis)
    found = apis.all
    by_default = most is None and shown is not None
    listed = top(found, MAX_APIS if by is By.API and by_default else shown)

    def sections() -> list[Section]:
        return [calls(listed, apis.totals(), by), errors(found, shown)]

    def to_json() -> dict[str, Any]:
        rows = as_json(listed.first, by)
        return {"by": by.value, "calls": rows, "left_out": listed.left_out}

    show(captures, form, sections, to_json)


def calls(shown: Shown[Api], noted: ApiTotals, by: By = By.API, *, longest: bool = True) -> Section:
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
            share_text(one.error_rate),
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
    return Section("Requests", head, rows, [*shown.more("entries"), *_notes(noted)])


def _notes(noted: ApiTotals) -> list[str]:
    notes = [
        f"{name} responses may wait for {what}."
        for name, what in WAITING.items()
        if name in noted.api_names
    ]
    count = noted.responses_without_request
    if count:
        notes.append(f"{plural(count, 'response')} without a request in the capture.")
    return [" ".join(notes)] if notes else []


def errors(found: list[Api], most: int | None) -> Section:
    """List the error codes in responses, by API."""
    from kafkawire.protocol.error_code import ErrorCode

    shown = top([(one, *n) for one in found for n in one.codes.most_common()], most)
    rows = [
        (one.name, one.group or "", ErrorCode.name_of(code), count_text(count))
        for one, code, count in shown.first
    ]
    head = ("API", "", "error code", ">responses")
    return Section("Errors", head, rows, shown.more("errors"))


def as_json(found: list[Api], by: By = By.API) -> list[dict[str, Any]]:
    """Return the requests by API as JSON."""
    return [{**one.json(), **({} if by is By.API else {by.value: one.group})} for one in found]
