"""Draws the screen of `kafkawire top`, and its plain lines.

A line is never wider than the terminal, and names from outside are escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkawire.display import bytes_text, printable, time_text

from .report import milliseconds_text

if TYPE_CHECKING:
    from kafkawire.reports.diagnosis.finding import ResolvedFinding
    from kafkawire.reports.windows import Rate, Windows

KIND_KEYS: Final = {"a": "api", "c": "client", "t": "topic", "g": "group", "b": "broker"}
FINDINGS: Final = "finding"
FINDINGS_KEYS: Final = {"d": FINDINGS}
"""What is listed instead of rates: the findings of `kafkawire diagnose` so far."""

SORT_KEYS: Final = {
    "r": "requests", "s": "bytes", "l": "latency", "e": "errors", "f": "in flight"
}  # fmt: skip
QUIT: Final = frozenset("qQ\x1b\x03\x04")

COLUMNS: Final[tuple[tuple[str, int, Callable[[Rate], str]], ...]] = (
    ("req/s", 8, lambda one: _number(one.requests)),
    ("bytes/s", 9, lambda one: bytes_text(round(one.bytes)) if one.bytes else ""),
    ("p50 ms", 8, lambda one: milliseconds_text(one.p50_ns)),
    ("p99 ms", 8, lambda one: milliseconds_text(one.p99_ns)),
    ("err/s", 7, lambda one: _number(one.errors)),
    ("in flight", 9, lambda one: f"{one.in_flight:,}" if one.in_flight else ""),
)
MIN_NAME: Final = 12

ENTER: Final = "\x1b[?1049h\x1b[?25l"
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
"""The alternate screen, without a cursor; and back."""

HEADING: Final = (
    f"{'time (UTC)':8} {'requests/s':>10} {'bytes/s':>9} {'p50 ms':>8} {'p99 ms':>8} "
    f"{'errors/s':>8} {'in flight':>9}  busiest"
)


class Size(NamedTuple):
    """The size of a terminal."""

    columns: int
    rows: int


class Screen:
    """The screen. kind: what the lines stand for; sort: their order.

    findings: returns the findings so far, the most harmful first.
    """

    def __init__(
        self, windows: Windows, findings: Callable[[], list[ResolvedFinding]] = list
    ) -> None:
        self.kind = "api"
        self.sort = "requests"
        self._windows = windows
        self._findings = findings

    def press(self, key: str) -> bool:
        """Handle a key; False if the user quits."""
        self.kind = (KIND_KEYS | FINDINGS_KEYS).get(key, self.kind)
        self.sort = SORT_KEYS.get(key, self.sort)
        return key not in QUIT

    def text(self, now_ns: int, size: Size) -> str:
        """Return what draws the screen over the last one."""
        lines = [_fit(line, size.columns) for line in self._lines(now_ns, size)]
        return "\x1b[H" + "\r\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J"

    def _lines(self, now_ns: int, size: Size) -> list[str]:
        total = self._windows.total(now_ns)
        head = [
            f"kafkawire top  {clock(now_ns)}  {_summary(total)}",
            f"by {_choices(KIND_KEYS | FINDINGS_KEYS, self.kind)}",
            f"sort {_choices(SORT_KEYS, self.sort)}  q quits",
            "",
        ]
        heading, body = (
            self._findings_lines() if self.kind == FINDINGS else self._rates(now_ns, size)
        )
        room = max(0, size.rows - len(head) - 2)
        rest = len(body) - room
        return [*head, heading, *body[:room], *([f"... and {rest:,} more"] if rest > 0 else [])]

    def _rates(self, now_ns: int, size: Size) -> tuple[str, list[str]]:
        """Return the heading and the lines of rates."""
        from kafkawire.reports.windows import busiest

        rates = busiest(self._windows.rates(self.kind, now_ns), self.sort)
        wide = max(MIN_NAME, size.columns - sum(width + 1 for _, width, _ in COLUMNS))
        heading = [f"{self.kind:{wide}}", *(f"{name:>{width}}" for name, width, _ in COLUMNS)]
        lines = [
            " ".join(
                [
                    _padded(printable(rate.name), wide),
                    *(f"{text(rate):>{width}}" for _, width, text in COLUMNS),
                ]
            )
            for rate in rates
        ]
        return " ".join(heading), lines

    def _findings_lines(self) -> tuple[str, list[str]]:
        """Return the heading and the lines of findings."""
        lines = [
            f"{one.finding.severity.value:8} {one.finding.rule:24} "
            + printable(f"{one.who}: {one.finding.what}" if one.who else one.finding.what)
            for one in self._findings()
        ]
        return f"{'severity':8} {FINDINGS:24} of the whole capture", lines or ["no findings"]


def line(windows: Windows, now_ns: int) -> str:
    """Return a plain line for all exchanges, with the API that has the most requests."""
    from kafkawire.reports.windows import busiest

    total = windows.total(now_ns)
    first = next(iter(busiest(windows.rates("api", now_ns), "requests")), None)
    name = printable(first.name) if first is not None else ""
    return (
        f"{clock(now_ns):8}   {_number(total.requests) or '0':>10} "
        f"{bytes_text(round(total.bytes)):>9} {milliseconds_text(total.p50_ns):>8} "
        f"{milliseconds_text(total.p99_ns):>8} {_number(total.errors) or '0':>8} "
        f"{total.in_flight:>9,}  {name}"
    ).rstrip()


def clock(time_ns: int) -> str:
    """Format a time of day in UTC."""
    return (time_text(time_ns) or "")[11:19]


def _summary(total: Rate) -> str:
    parts = [
        f"{_number(total.requests) or '0'} requests/s",
        f"{bytes_text(round(total.bytes))}/s",
        f"p99 {milliseconds_text(total.p99_ns)} ms" if total.p99_ns is not None else "",
        f"{_number(total.errors)} errors/s" if total.errors else "",
        f"{total.in_flight:,} in flight" if total.in_flight else "",
    ]
    return "  ".join(filter(None, parts))


def _choices(keys: dict[str, str], chosen: str) -> str:
    shown = {name: f"[{name}]" if name == chosen else name for name in keys.values()}
    return "  ".join(f"{key}:{shown[name]}" for key, name in keys.items())


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value else ""


def _padded(text: str, width: int) -> str:
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


def _fit(text: str, columns: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= columns else set_cell_size(text, columns)
