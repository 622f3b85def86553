"""`kafkawire topics` of captures: records produced and fetched per topic."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

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
from ..render.report import Section, bytes_text, count_text, list_text

if TYPE_CHECKING:
    from kafkawire.reports.topics import Amount, Topic


class Sort(StrEnum):
    """Sort orders, largest first."""

    BYTES = "bytes"
    RECORDS = "records"


def topics(
    given: Files,
    sort: Annotated[Sort, typer.Option(help="Sort topics by this, largest first.")] = Sort.BYTES,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show the topics in captures."""
    bound = limit(most, every, form)
    with reading("topics", given, port, broker) as captures:
        from kafkawire.reports.problems import Problems
        from kafkawire.reports.topics import Topics

        collector = Topics(captures.context.names, Problems(captures).corrupt_records)
        captures.read(collector)
    found = collector.all
    if sort is Sort.RECORDS:
        found.sort(key=lambda topic: -topic.records)
    shown = top(found, bound)

    def as_json() -> dict[str, Any]:
        return {"topics": [topic.json() for topic in shown.first], "left_out": shown.left_out}

    show(captures, form, lambda: [amounts(shown), *users(shown.first, bound)], as_json)


def amounts(shown: Shown[Topic]) -> Section:
    """List the topics with records and bytes produced and fetched."""
    head = (
        "topic", ">partitions", ">produced", ">bytes", ">fetched", ">bytes", "codecs",
    )  # fmt: skip
    rows = [
        (
            topic.label,
            count_text(len(topic.partitions)),
            *(text for direction in topic.directions.values() for text in amount(direction)),
            ", ".join(codec for codec, _ in topic.codecs.most_common()),
        )
        for topic in shown.first
    ]
    return Section("Topics", head, rows, shown.more("topics"))


def amount(direction: Amount) -> tuple[str, str]:
    """Format records and bytes of one direction."""
    return (
        count_text(direction.records),
        bytes_text(direction.bytes) if direction.bytes else "",
    )


def users(found: list[Topic], most: int | None) -> list[Section]:
    """List producing and fetching clients, and errors, per topic."""
    from kafkawire.protocol.error_code import ErrorCode

    clients = [
        (topic.label, *(list_text(direction.clients) for direction in topic.directions.values()))
        for topic in found
    ]
    shown = top([(topic, *n) for topic in found for n in topic.codes.most_common()], most)
    error_rows = [
        (topic.label, ErrorCode.name_of(code), count_text(count))
        for topic, code, count in shown.first
    ]
    return [
        Section("Clients", ("topic", "produced by", "fetched by"), clients),
        Section("Errors", ("topic", "error code", ">count"), error_rows, shown.more("errors")),
    ]
