"""`kafkawire latency`: how long brokers took to answer, and how often with an error."""

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
    """What calls are told apart by, besides their API."""

    API = "api"
    VERSION = "version"
    CLIENT = "client"
    BROKER = "broker"


APIS: Final = 100
"""Calls that a person sees by default where they are told apart by API alone: all APIs there are,
and not all keys that hostile requests may have.
"""

WAITS: Final = {"Fetch": "for data", "JoinGroup": "for the other members"}
"""APIs whose answers may wait for something, so that their latency is not the broker's."""


def latency(
    given: Files,
    by: Annotated[By, typer.Option(help="Tell the calls of an API apart.")] = By.API,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show calls by API: counts, errors, latency.

    \b
    kafkawire latency trace*.pcap
    kafkawire latency trace.pcap --by client
    kafkawire latency trace.pcap --format json | jq '.calls[] | select(.p99_ns > 1e8)'

    Quantiles are within 1 %; the longest time is exact.
    """
    shown = limit(most, every, form)
    with reading("latency", given, port, broker) as captures:
        from kafkawire.reports.apis import Apis

        apis = Apis(by.value)
        captures.read(apis)
    found = apis.all
    by_default = most is None and shown is not None
    called = top(found, APIS if by is By.API and by_default else shown)

    def sections() -> list[Section]:
        return [calls(called, apis.totals(), by), errors(found, shown)]

    def made() -> dict[str, Any]:
        listed = as_json(called.first, by)
        return {"by": by.value, "calls": listed, "left_out": called.left_out}

    show(captures, form, sections, made)


def calls(shown: Shown[Api], noted: ApiTotals, by: By = By.API, *, longest: bool = True) -> Section:
    """Make the list of calls. noted: of all calls."""
    of = by is not By.API
    asked = [one for one in shown.first if one.requests]
    unanswered = any(one.without_response for one in asked)
    rows = [
        (
            one.name,
            *((one.group or "",) if of else ()),
            count_text(one.requests),
            *((count_text(one.without_response),) if unanswered else ()),
            share_text(one.error_rate),
            *(milliseconds_text(one.latency.at(share)) for share in (0.5, 0.95, 0.99)),
            *((milliseconds_text(one.latency.max),) if longest else ()),
        )
        for one in asked
    ]
    head = (
        "API",
        *((by.value,) if of else ()),
        ">calls",
        *((">no reply",) if unanswered else ()),
        *(">errors", ">p50 ms", ">p95 ms", ">p99 ms"),
        *((">max ms",) if longest else ()),
    )
    return Section("Calls", head, rows, [*shown.more("calls"), *_notes(noted)])


def _notes(noted: ApiTotals) -> list[str]:
    notes = [f"{name} waits {what}." for name, what in WAITS.items() if name in noted.api_names]
    if noted.responses_without_request:
        count = plural(noted.responses_without_request, "response")
        notes.append(f"{count} without a request in the capture.")
    return [" ".join(notes)] if notes else []


def errors(found: list[Api], most: int | None) -> Section:
    """Make the list of error codes in responses, of the calls in their order."""
    from kafkawire.protocol.error_code import ErrorCode

    shown = top([(one, *n) for one in found for n in one.codes.most_common()], most)
    rows = [
        (one.name, one.group or "", ErrorCode.name_of(code), count_text(count))
        for one, code, count in shown.first
    ]
    head = ("API", "", "error code", ">responses")
    return Section("Errors", head, rows, shown.more("errors"))


def as_json(found: list[Api], by: By = By.API) -> list[dict[str, Any]]:
    """Make the list of calls as JSON."""
    return [{**one.json(), **({} if by is By.API else {by.value: one.group})} for one in found]
