"""What suites say of two brokers, side by side, as a table of docs/internals/peers.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Final, NamedTuple

from tests.conftest import ROOT

from .suites import FAILED, PASSED, SKIPPED, Outcomes

PAGE: Final = ROOT / "docs" / "internals" / "peers.md"
BEGIN: Final = "<!-- suites: make peers -->\n"
END: Final = "<!-- end of suites -->\n"
NOT_RUN: Final = "not run"
KAFKA: Final = "Apache Kafka"
OURS: Final = "kafkawire"

STATIC_VOTERS: Final = "our controllers are those of --controllers: static voters"
REASONS: Final[dict[tuple[str, str], str]] = {
    ("kadm", "DescribeShareGroupOffsets"): "a lag is never negative",
    **{
        ("tools", f"cluster: kafka-metadata-quorum {call}"): STATIC_VOTERS
        for call in (
            "describe --status",
            "describe --replication",
            "describe --replication --human-readable",
            "remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
        )
    },
}
"""(suite, test) -> why its outcomes differ."""


class Difference(NamedTuple):
    """A test whose outcomes differ, or that passes at neither broker."""

    suite: str
    test: str
    kafka: str
    ours: str

    @property
    def is_ours(self) -> bool:
        """Whether Kafka does what our broker does not, and no reason is stated."""
        short = self.kafka == PASSED and self.ours != PASSED
        return short and (self.suite, self.test) not in REASONS


def compared(kafka: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, Outcomes]:
    """Return outcomes for the results of a sweep: ours fails a call with another result."""
    same = {call: PASSED if ours.get(call) == kafka[call] else FAILED for call in kafka}
    return {KAFKA: dict.fromkeys(kafka, PASSED), OURS: same}


def unlike(kafka: Mapping[str, str], ours: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines by which the results of a sweep differ."""
    for call, result in kafka.items():
        rows = result.splitlines(), ours.get(call, NOT_RUN).splitlines()
        changed = list(unified_diff(*rows, KAFKA, OURS, lineterm="", n=0))
        yield from (f"{line}\n" for line in ([call, *changed[2:]] if changed else []))


Results = Mapping[str, Mapping[str, Outcomes]]
"""Outcomes by suite and broker."""


def differences(results: Results) -> Iterator[Difference]:
    """Yield the tests that differ, or fail at both."""
    for suite, by_broker in results.items():
        kafka, ours = by_broker[KAFKA], by_broker[OURS]
        for test in sorted(kafka.keys() | ours.keys()):
            pair = kafka.get(test, NOT_RUN), ours.get(test, NOT_RUN)
            if pair[0] != pair[1] or FAILED in pair:
                yield Difference(suite, test, *pair)


def drawn(results: Results) -> str:
    """Return the tables as Markdown: counts, then differences."""
    lines = ["| suite | broker | passed | failed | skipped |", "|" + " --- |" * 5]
    for suite, by_broker in results.items():
        for broker, outcomes in by_broker.items():
            count = Counter(outcomes.values())
            cells = (suite, broker, count[PASSED], count[FAILED], count[SKIPPED])
            lines.append(f"| {' | '.join(map(str, cells))} |")
    rows = list(differences(results))
    if rows:
        lines += ["", "| suite | test | Apache Kafka | kafkawire | because |", "|" + " --- |" * 5]
    for row in rows:
        because = REASONS.get((row.suite, row.test), "")
        lines.append(f"| {row.suite} | `{row.test}` | {row.kafka} | {row.ours} | {because} |")
    return "\n".join(lines) + "\n"


def written(page: str, results: Results) -> str:
    """Return the page with the tables of these results. ValueError if it has no place for them."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{drawn(results)}\n{END}{rest.split(END, 1)[1]}"
