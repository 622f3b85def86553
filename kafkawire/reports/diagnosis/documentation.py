"""Writes docs/diagnose.md to standard output: how to use it, the rules, false alarms.

python -m kafkawire.reports.diagnosis.documentation
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .error_rule import RuleDefinition
from .registry import RULES

INTRODUCTION: Final = """\
# What is wrong here?

`kafkawire diagnose` reads captures once, and lists what is wrong in them, the most harmful first:
who, what, when and how often, the packets that show it, the likely cause, and what to look at or
change.

```console
$ kafkawire diagnose fixtures/captures/kp22-old-0.9.pcap --top 1
  10 requests in 105 packets
  6 findings: 6 warnings

WARNING unsupported-versions: client kpold-0.9-gzip, broker 127.0.0.1:35461
  what:     UNSUPPORTED_VERSION in 1 response to Produce
  when:     1 time, 2026-11-21T04:12:31.053402000Z
  cost:     0.063 ms, 402 B
  packets:  fixtures/captures/kp22-old-0.9.pcap 36
...
$ kafkawire decode fixtures/captures/kp22-old-0.9.pcap --filter "error == UNSUPPORTED_VERSION"
$ kafkawire diagnose trace*.pcap --fail-on critical --disable old-versions
$ kafkawire diagnose trace.pcap --set tiny-batches.bytes=512 --format json
$ kafkawire diagnose --list
```

`filter` selects the messages of a finding for `decode --filter`; the packets can be opened with
`explain --packet` and Wireshark. Other options are those of all [reports](capture.md#reports).

- **Severity.** *critical*: data is rejected, lost or not processed. *warning*: time or resources
  are wasted, or an operation fails now and then. *notice*: worth knowing, nothing fails.
- **Confidence.** *high*: the broker or the client states it. *medium*: the usual cause of what was
  seen. *low*: something outside of the capture may explain it.
- **Exit code.** 1 if there is a finding at least as severe as `--fail-on`; else 0, or 2 as in every
  report if a file is not a capture.
- **Rules.** `--disable RULE` switches one off, `--set RULE.THRESHOLD=VALUE` changes a threshold;
  both can be repeated, also with `report` and `top`.
- **Elsewhere.** The page of [`kafkawire report`](capture.md#a-page-with-charts) has the findings,
  and so has the screen of [`kafkawire top`](capture.md#live) (key `d`), as of the capture so far.
  The [table](tables.md#findings) `findings` is for `kafkawire sql` and notebooks; in Spark,
  [`findings`](spark.md#findings) makes it of many captures, each in a task of its own.
- **Memory** grows with clients, topics, partitions and groups. Of each rule, 10,000 subjects are
  counted apart; the finding of client `(others)` has the rest.

As JSON: `counts` by severity, `left_out` (by `--top`) and `findings`, each with `rule`,
`severity`, `subject` (`client`, `address`, `group`, `group_instance_id`, `transactional_id`,
`topic`, `partition`, `broker`, `broker_id`, `api`, as far as they apply), `what`, `count`,
`first_time`, `last_time`, `cost` (`time_ns`, `bytes`), `packets` (`file`, `packet`), `filter`,
`cause`, `advice`, `settings` (`key`, and the `value` seen in the capture), `reference` and
`confidence`.

## Rules of your own

A rule is a subclass of `kafkawire.reports.diagnosis.Rule`. It is called for each exchange
(`exchange`), for those with a response and a latency (`responded`), for requests without a
response (`unanswered`), for error codes (`error`) and throttle times (`throttled`), events of
groups (`group_event`), produced batches (`produced`), the keys of a sample of them (`keys`), Fetch
requests with their responses (`fetched`), other rows (`row`) and ends of connections (`ended`), as
far as it defines these; `apis` limits the exchanges to some APIs, `least_latency_ns` the responses
to late ones. The fewer exchanges a rule handles, the faster the report. At the end, `findings`
returns what is wrong.

```python
from collections.abc import Iterator, Mapping

from kafkawire import ApiKey, ErrorCode
from kafkawire.reports.diagnosis import (
    Confidence,
    Exchange,
    Finding,
    Occurrences,
    Rule,
    Scene,
    Severity,
    Subjects,
    Threshold,
    client_of,
)


class TopicsCreatedTwice(Rule):
    name = "topics-created-twice"
    description = "A client creates topics that exist."
    apis = frozenset({ApiKey.CREATE_TOPICS})
    error_codes = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS})
    thresholds = (Threshold("errors", 3, "errors", "one may be a race"),)

    def __init__(self, scene: Scene, limits: Mapping[str, float]) -> None:
        super().__init__(scene, limits)
        self._clients = Subjects(Occurrences)

    def error(self, exchange: Exchange, code: int) -> None:
        if exchange.response is not None:
            self._clients.of(client_of(exchange)).add(exchange.response)

    def findings(self) -> Iterator[Finding]:
        for subject, seen in self._clients:
            if seen.count >= self.limits["errors"]:
                yield Finding(
                    self.name,
                    Severity.NOTICE,
                    subject,
                    "creates topics that exist",
                    seen,
                    "Each instance creates them when it starts.",
                    "Create topics once, when you deploy.",
                    Confidence.HIGH,
                )
```

An entry point of the group `kafkawire.diagnosis` in your package's `pyproject.toml` installs it:
`[project.entry-points."kafkawire.diagnosis"]`, and below `topics-created-twice =
"mypackage.rules:TopicsCreatedTwice"`. A rule about error codes alone is an object of the class
`kafkawire.reports.diagnosis.ErrorRule`, with the codes, the thresholds and the texts.

## Real trouble, and false alarms

`fixtures/incidents` has captures of unmodified clients (librdkafka, aiokafka, Java) in trouble at a
Kafka 4.4.0 of one node or of three, or at a Kafka 3.9.1, each made on purpose, for 84 of the 85
rules: a broker that is paused, killed, slow, cut off from its controller or has the wrong time, an
unclean election, a disk that is gone, a network that loses or delays packets, a wrong advertised
address, a paused consumer, a quota, records that take too long to process, a transaction that stays
open. A test checks that each one's rule is the first finding, about the right client, and that a
capture of producers, groups and transactions that work has no finding at all.
`duplicate-sequences` has none: no class of Kafka 2.8.2, 3.9.1 or 4.4.0 that was looked through
throws DUPLICATE_SEQUENCE_NUMBER. Brokers respond to a batch that they have as to the first one, so
`produce-retries` reports such a producer; the rule is for other brokers, and tested by messages
that are made up.

Another test runs all rules over the other captures of the repository. Findings in them, and in
captures of other projects that are not part of it, as `python -m
tests.reports.diagnosis.false_alarms` counts them:

| captures | files | critical | warning | notice |
| --- | --- | --- | --- | --- |
| clients at test brokers, as recorded | 52 | 0 | 50 | 5 |
| tunnels, proxies, link types | 15 | 0 | 0 | 2 |
| TLS, read without keys | 11 | 0 | 0 | 17 |
| brokers with ZooKeeper, started and stopped | 6 | 0 | 0 | 12 |
| of other projects | 8 | 0 | 4 | 0 |

The warnings are true: clients that use versions which Kafka 4.0 does not have, a test program that
sends every request, valid or not (`fg-sweep-*`), one snapshot length of 200 bytes, a SyncGroup that
failed, and a Fetch that took thirteen seconds. The notices are connections that are encrypted or
were captured twice, missing packets, and brokers that shut down.

One pass takes 1.2 to 1.6 times the time of `kafkawire summary`. `tshark -T fields` takes 3.3 times
as much on 100 MB of varied traffic, on a busy machine (`python -m benchmarks.reports`).

## The rules
"""


def rule_json(rule: RuleDefinition) -> dict[str, Any]:
    """Return the JSON form of a rule."""
    return {
        "rule": rule.name,
        "description": rule.description,
        "thresholds": [threshold._asdict() for threshold in rule.thresholds],
    }


def markdown() -> str:
    """Return the whole page."""
    return INTRODUCTION + "".join(f"{line}\n" for rule in RULES for line in _section(rule))


def _section(rule: RuleDefinition) -> Iterator[str]:
    yield from ("", f"### {rule.name}", "", rule.description)
    if rule.thresholds:
        yield from ("", "| threshold | default | why |", "| --- | --- | --- |")
    for one in rule.thresholds:
        yield f"| `{one.name}` | {one.default:,.10g} {one.unit} | {one.reason} |"


if __name__ == "__main__":
    print(markdown(), end="")
