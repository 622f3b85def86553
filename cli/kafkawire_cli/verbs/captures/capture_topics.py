"""`kafkawire topics` of captures: records produced and fetched per topic."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render import sections as sections_of
from ...render.report import Section, count_text, list_text, print_capture_report, top

if TYPE_CHECKING:
    from kafkawire.reports.topics import Topic


class Sort(StrEnum):
    """Sort orders, largest first."""

    BYTES = "bytes"
    RECORDS = "records"


def topics(
    files: Files,
    sort: Annotated[Sort, typer.Option(help="Sort topics by this, largest first.")] = Sort.BYTES,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Show the topics in captures."""
    bound = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.problems import Problems
        from kafkawire.reports.topics import Topics

        collector = Topics(captures.context.names, Problems(captures).corrupt_records)
        captures.read(collector)
    topics_found = collector.all
    if sort is Sort.RECORDS:
        topics_found.sort(key=lambda topic: -topic.records)
    shown = top(topics_found, bound)

    def as_json() -> dict[str, Any]:
        return {"topics": [topic.json() for topic in shown.first], "left_out": shown.left_out}

    def sections() -> list[Section]:
        return [sections_of.topics(shown), *_details(shown.first, bound)]

    print_capture_report(captures, options.form, sections, as_json, "No topics found.")


def _details(topics_of_report: list[Topic], most: int | None) -> list[Section]:
    """List producing and fetching clients, and errors, per topic."""
    from kafkawire.protocol.error_code import ErrorCode

    clients = [
        (topic.label, *(list_text(direction.clients) for direction in topic.directions.values()))
        for topic in topics_of_report
    ]
    shown = top(
        [(topic, *n) for topic in topics_of_report for n in topic.codes.most_common()], most
    )
    error_rows = [
        (topic.label, ErrorCode.name_of(code), count_text(count))
        for topic, code, count in shown.first
    ]
    return [
        Section("Clients", ("topic", "produced by", "fetched by"), clients),
        Section("Errors", ("topic", "error code", ">count"), error_rows, shown.more("error")),
    ]
