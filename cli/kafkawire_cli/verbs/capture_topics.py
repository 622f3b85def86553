"""`kafkawire topics`: what was written to topics and read from them."""

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
    """What topics are sorted by, the greatest first."""

    BYTES = "bytes"
    RECORDS = "records"


def topics(
    given: Files,
    sort: Annotated[Sort, typer.Option(help="The greatest first.")] = Sort.BYTES,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Show topics: records, bytes, codecs, by whom.

    \b
    kafkawire topics trace*.pcap
    kafkawire topics trace.pcap --sort records --top 50

    Bytes are those of record batches on the wire, as they are compressed.
    """
    bound = limit(most, every, form)
    with reading("topics", given, port, broker) as captures:
        from kafkawire.reports.problems import Problems
        from kafkawire.reports.topics import Topics

        tally = Topics(captures.context.names, Problems(captures).corrupt_records)
        captures.read(tally)
    found = tally.all
    if sort is Sort.RECORDS:
        found.sort(key=lambda topic: -topic.records)
    shown = top(found, bound)

    def made() -> dict[str, Any]:
        return {"topics": [topic.json() for topic in shown.first], "left_out": shown.left_out}

    show(captures, form, lambda: [amounts(shown), *users(shown.first, bound)], made)


def amounts(shown: Shown[Topic]) -> Section:
    """Make the list of topics with what was written and read."""
    head = (
        "topic", ">partitions", ">produced", ">bytes", ">fetched", ">bytes", "codecs",
    )  # fmt: skip
    rows = [
        (
            topic.label,
            count_text(len(topic.partitions)),
            *(text for way in topic.directions.values() for text in amount(way)),
            ", ".join(codec for codec, _ in topic.codecs.most_common()),
        )
        for topic in shown.first
    ]
    return Section("Topics", head, rows, shown.more("topics"))


def amount(way: Amount) -> tuple[str, str]:
    """Write records and bytes of one direction."""
    return count_text(way.records), bytes_text(way.bytes) if way.bytes else ""


def users(found: list[Topic], most: int | None) -> list[Section]:
    """Make the list of who wrote and read, and that of errors."""
    from kafkawire.protocol.error_code import ErrorCode

    who = [
        (topic.label, *(list_text(way.clients) for way in topic.directions.values()))
        for topic in found
    ]
    shown = top([(topic, *n) for topic in found for n in topic.codes.most_common()], most)
    wrong = [
        (topic.label, ErrorCode.name_of(code), count_text(count))
        for topic, code, count in shown.first
    ]
    return [
        Section("Clients", ("topic", "produced by", "fetched by"), who),
        Section("Errors", ("topic", "error code", ">times"), wrong, shown.more("errors")),
    ]
