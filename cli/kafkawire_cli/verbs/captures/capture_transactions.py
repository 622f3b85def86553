"""`kafkawire transactions`: the transactions in captures, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render.report import print_capture_report, top

if TYPE_CHECKING:
    from ...render.report import Section


def transactions(given: Files, options: ReportOptions = DEFAULTS) -> None:
    """Show transactions: partitions, aborts, hanging ones.

    \b
    kafkawire transactions trace*.pcap
    kafkawire transactions trace.pcap -f json | jq '.transactional_ids[]'

    Each transactional id has its producers, counts of committed and aborted transactions, and their
    duration. Hanging transactions have no end in the capture. Of each id, the last 100 committed
    transactions are listed, and the last 100 others.
    """
    bound = options.limit()
    with reading("transactions", given, options) as captures:
        from kafkawire.reports.transactions import Transactions

        from ...render.transaction_list import sections_of

        collector = Transactions(captures)
        captures.read(collector)
        collector.finish()
    found = collector.all
    shown = top(found, bound)

    def sections() -> list[Section]:
        return sections_of(found, bound)

    def as_json() -> dict[str, Any]:
        return {
            "transactional_ids": [history.json() for history in shown.first],
            "left_out": shown.left_out,
        }

    print_capture_report(captures, options.form, sections, as_json, "No transactions found.")
