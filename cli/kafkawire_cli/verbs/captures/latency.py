"""`kafkawire latency`: response times and error rates of requests in captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render import sections as sections_of
from ...render.report import print_capture_report, top
from ...render.sections import ApiOrder, By

if TYPE_CHECKING:
    from ...render.report import Section

MAX_APIS: Final = 100
"""Entries shown by default when grouped by API alone: more than there are APIs, but not every key
that malicious requests may contain.
"""


def latency(
    files: Files,
    by: Annotated[By, typer.Option(help="Group requests by API, and by this.")] = By.API,
    options: ReportOptions = DEFAULTS,
    sort: Annotated[ApiOrder, typer.Option(help="Sort entries by this.")] = ApiOrder.HARM,
) -> None:
    """Show requests by API: counts, errors, latency.

    \b
    kafkawire latency trace*.pcap
    kafkawire latency trace.pcap --by client --sort latency --top 5
    kafkawire latency trace.pcap --format json | jq '.calls[] | select(.p99_ns > 1e8)'

    Quantiles have an error of at most 1 %; the maximum is exact. By harm, entries with errors and
    requests without a response come first, then the slowest; errors that are normal in the protocol
    and responses that wait for data or for other members do not count.
    """
    shown = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.apis import Apis
        from kafkawire.reports.exchanges import Unanswered

        apis, unanswered = Apis(by.value), Unanswered(captures)
        captures.read(apis, unanswered)
    found = apis.in_order(sort.value)
    by_default = options.most is None and shown is not None
    listed = top(found, MAX_APIS if by is By.API and by_default else shown)

    def sections() -> list[Section]:
        return [
            sections_of.requests(listed, apis.totals(), by),
            *sections_of.request_errors(found, shown, by),
            sections_of.unanswered(unanswered, shown),
        ]

    def to_json() -> dict[str, Any]:
        rows = sections_of.requests_json(listed.first, by)
        waiting = top(unanswered.all, shown)
        return {
            "by": by.value,
            "calls": rows,
            "left_out": listed.left_out,
            "unanswered": [request.json() for request in waiting.first],
            "unanswered_left_out": unanswered.count - len(waiting.first),
            "unanswered_polls": unanswered.polls,
        }

    print_capture_report(captures, options.form, sections, to_json, "No requests found.")
