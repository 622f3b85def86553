"""`kafkawire topics` of captures: records produced and fetched per topic."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render import sections as sections_of
from ...render.report import print_capture_report, top

if TYPE_CHECKING:
    from ...render.report import Section


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
        return [sections_of.topics(shown), *sections_of.topic_details(shown.first, bound)]

    print_capture_report(captures, options.form, sections, as_json, "No topics found.")
