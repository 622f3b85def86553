"""Renders transactional ids and their transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.display import plural, time_text
from kafkawire.reports.transaction import IdHistory, Producer, State, Transaction

from .report import (
    Section,
    count_text,
    duration_text,
    list_text,
    ranges_text,
    top,
)

TITLES: Final = {
    "Hanging transactions": (State.HANGING,),
    "Aborted transactions": (State.ABORTED,),
    "Transactions with an unknown end": (State.UNKNOWN,),
    "Committed transactions, the longest first": (State.COMMITTED,),
}
"""Title of a section -> the states of its transactions."""


def sections_of(histories: list[IdHistory], most: int | None) -> list[Section]:
    """Render the report; most: entries of each list."""
    kept = [one for history in histories for one in history.transactions]
    return [
        _ids(histories, most),
        *(
            _transactions(title, (one for one in kept if one.state in states), most)
            for title, states in TITLES.items()
        ),
        _errors(histories, most),
    ]


def _ids(histories: list[IdHistory], most: int | None) -> Section:
    head = (
        "transactional id", "producer", ">committed", ">aborted", ">unknown", ">hanging", ">max",
    )  # fmt: skip
    shown = top(histories, most)
    rows = [
        (
            history.transactional_id,
            _producer(history.producer),
            count_text(history.counts[State.COMMITTED]),
            count_text(history.counts[State.ABORTED]),
            count_text(history.counts[State.UNKNOWN]),
            count_text(int(history.current is not None)),
            duration_text(history.durations.max),
        )
        for history in shown.first
    ]
    return Section("Transactional ids", head, rows, shown.more("transactional id"), ("producer",))


def _transactions(title: str, entries: Iterable[Transaction], most: int | None) -> Section:
    head = (
        "transactional id", "producer", "begin (UTC)", ">duration", "partitions and offsets",
        "reason",
    )  # fmt: skip
    shown = top(sorted(entries, key=lambda one: -(one.duration_ns or 0)), most)
    rows = [
        (
            one.transactional_id,
            _producer(one.producer),
            "before the capture" if one.begin_ns == NO_TIME else _time(one.begin_ns),
            duration_text(one.duration_ns),
            "; ".join(filter(None, (_partitions(one), _offsets(one)))),
            one.reason,
        )
        for one in shown.first
    ]
    return Section(title, head, rows, shown.more("transaction"), ("producer", "begin (UTC)"))


def _producer(producer: Producer) -> str:
    """Format a producer id and its epoch."""
    return "" if producer.producer_id < 0 else f"{producer.producer_id}/{producer.producer_epoch}"


def _time(time_ns: int) -> str:
    return (time_text(time_ns) or "")[11:23]


def _partitions(one: Transaction) -> str:
    texts = [
        f"{topic.name or topic.id_text} {ranges_text(numbers)}" for topic, numbers in one.by_topic()
    ]
    more = f", +{one.more:,}" if one.more else ""
    return list_text(texts) + more + (" (by Produce)" if one.implicit else "")


def _offsets(one: Transaction) -> str:
    texts = (f"{group} {n:,}" if n else group for group, n in one.groups.items())
    return f"offsets of {list_text(texts)}" if one.groups else ""


def _errors(histories: list[IdHistory], most: int | None) -> Section:
    """List errors outside of transactions."""
    from kafkawire.protocol.error_code import ErrorCode

    entries = [
        (history.transactional_id, code, count)
        for history in histories
        for code, count in history.errors.most_common()
    ]
    shown = top(entries, most)
    lines = [
        f"{name}: {ErrorCode.name_of(code)}, {plural(count, 'time')}"
        for name, code, count in shown.first
    ]
    return Section("Errors outside of transactions", lines=[*lines, *shown.more("error")])
