"""`kafkawire transactions` of captures: each transactional id, and its transactions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render.report import print_capture_report, top

if TYPE_CHECKING:
    from ...render.report import Section


class IdOrder(StrEnum):
    """Orders of transactional ids; those that are equal are sorted by id."""

    HARM = "harm"
    DURATION = "duration"
    TRANSACTIONS = "transactions"
    ID = "id"


def transactions(
    files: Files, options: ReportOptions = DEFAULTS, sort: IdOrder = IdOrder.HARM
) -> None:
    """Show the transactions in captures, and what became of them."""
    bound = options.limit()
    with reading(files, options) as captures:
        from kafkawire.reports.transactions import Transactions

        from ...render.transaction_list import sections_of

        collector = Transactions(captures)
        captures.read(collector)
        collector.finish()
    histories = collector.in_order(sort.value)
    shown = top(histories, bound)

    def sections() -> list[Section]:
        return sections_of(histories, bound)

    def as_json() -> dict[str, Any]:
        return {
            "transactional_ids": [history.json() for history in shown.first],
            "left_out": shown.left_out,
        }

    print_capture_report(captures, options.form, sections, as_json, "No transactions found.")
