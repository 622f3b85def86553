"""What suites say of two brokers, side by side, as a table of docs/internals/peers.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Final, NamedTuple

from tests.conftest import ROOT

from .outcomes import FAILED, PASSED, SKIPPED, Outcomes

PAGE: Final = ROOT / "docs" / "internals" / "peers.md"
BEGIN: Final = "<!-- suites: make peers -->\n"
END: Final = "<!-- end of suites -->\n"
NOT_RUN: Final = "not run"
KAFKA: Final = "Apache Kafka"
OURS: Final = "kafkawire"

STATIC_VOTERS: Final = "our controllers are those of --controllers: static voters"
SCRIPTS: Final = "it calls Kafka's shell scripts"
REASONS: Final[dict[tuple[str, str], str]] = {
    **{
        ("librdkafka", test): SCRIPTS
        for test in (
            "0052_msg_timestamps",
            "0077_compaction",
            "0109_auto_create_topics",
            "0115_producer_auth",
            "0119_consumer_auth",
        )
    },
    (
        "kafka-python",
        "test/integration/test_consumer_integration.py::test_group",
    ): "its session timeout is below `group.min.session.timeout.ms`",
    ("librdkafka", "0081_admin"): "it expects another error for an absent topic and an unknown key",
    ("librdkafka", "0092_mixed_msgver"): "it sets `message.format.version`, which 4.x lacks",
    ("librdkafka", "0103_transactions"): "it needs three brokers",
    ("librdkafka", "0129_fetch_aborted_msgs"): "its `segment.bytes` is below the least of 4.x",
    ("tools", "cluster: kafka-features describe"): STATIC_VOTERS,
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
"""(suite, test) -> why its outcomes differ, or why it passes at neither."""


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


COUNTS: Final = ("suite", "broker", "passed", "failed", "skipped")
DIFFERENCES: Final = ("suite", "test", "Apache Kafka", "kafkawire", "because")
RULE: Final = f"|{' --- |' * 5}"


def drawn(results: Results, kept: Sequence[str] = ()) -> str:
    """Return the tables as Markdown: counts, then differences.

    kept: rows of suites that are not in the results, in both tables before theirs.
    """
    counts = [row for row in kept if COUNT.fullmatch(row)]
    for suite, by_broker in results.items():
        for broker, outcomes in by_broker.items():
            count = Counter(outcomes.values())
            counts.append(_row(suite, broker, count[PASSED], count[FAILED], count[SKIPPED]))
    rows = [row for row in kept if row not in counts]
    for row in differences(results):
        because = REASONS.get((row.suite, row.test), "")
        rows.append(_row(row.suite, f"`{row.test}`", row.kafka, row.ours, because))
    lines = [_row(*COUNTS), RULE, *counts]
    if rows:
        lines += ["", _row(*DIFFERENCES), RULE, *rows]
    return "\n".join(lines) + "\n"


COUNT: Final = re.compile(r"\| [^|]+ \| [^|`]+ \| \d+ \| \d+ \| \d+ \|")
"""A row of the table of counts."""


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


HEADS: Final = (_row(*COUNTS), _row(*DIFFERENCES), RULE)


def written(page: str, results: Results) -> str:
    """Return the page with the tables of these results; rows of other suites stay.

    ValueError if it has no place for them.
    """
    before, rest = page.split(BEGIN, 1)
    old, after = rest.split(END, 1)
    rows = [line for line in old.splitlines() if line.startswith("| ")]
    kept = [line for line in rows if line.split(" | ")[0].removeprefix("| ") not in results]
    kept = [line for line in kept if line not in HEADS]
    return f"{before}{BEGIN}\n{drawn(results, kept)}\n{END}{after}"
