"""Rules about consumers and their groups."""

from __future__ import annotations

from pathlib import Path

from tests.cli.reports import report
from tests.conftest import FIXTURES

from .stories import Story, batch, rules


def fetching(times: int, records: str | None, every: float = 0) -> Story:
    story = Story()
    for _ in range(times):
        story.fetch(records).wait(every)
    return story


def test_many_small_fetches(tmp_path: Path) -> None:
    by_rule = rules(fetching(600, batch(50)), tmp_path)
    assert list(by_rule) == ["tiny-fetches"]
    values = {one["key"]: one["value"] for one in by_rule["tiny-fetches"]["settings"]}
    assert values == {"fetch.min.bytes": "1", "fetch.max.wait.ms": "500"}


def test_large_few_or_rare_fetches_are_no_trouble(tmp_path: Path) -> None:
    assert rules(fetching(600, batch(1500)), tmp_path) == {}
    assert rules(fetching(400, batch(50)), tmp_path) == {}
    assert rules(fetching(600, None, every=0.5), tmp_path) == {}  # long polls


def test_fetches_of_followers_are_not_counted(tmp_path: Path) -> None:
    story = Story()
    for _ in range(600):
        story.exchange("Fetch", 4, replicaId=2, maxWaitMs=500, minBytes=1)
    assert rules(story, tmp_path) == {}


def committing(times: int, records: int, every: float = 0) -> Story:
    story = Story()
    for number in range(times):
        story.commit(number * records).wait(every)
    return story


def test_a_commit_for_each_record(tmp_path: Path) -> None:
    by_rule = rules(committing(120, 1), tmp_path)
    assert list(by_rule) == ["commit-rate"]
    assert by_rule["commit-rate"]["subject"] == {"client": "tester", "group": "billing"}


def test_few_rare_or_large_commits_are_no_trouble(tmp_path: Path) -> None:
    assert rules(committing(120, 100), tmp_path) == {}
    assert rules(committing(90, 1), tmp_path) == {}
    assert rules(committing(120, 1, every=0.2), tmp_path) == {}


def rebalancing(times: int, every: float) -> Story:
    """A member that stays, and another one that comes and goes."""
    story = Story()
    for number in range(times):
        story.join(number + 1)
        story.wait(every)
        story.exchange(
            "Heartbeat",
            3,
            groupId="billing",
            memberId="m",
            generationId=number + 1,
            response={"errorCode": 27},
        )
    return story


def test_rebalances_one_after_the_other(tmp_path: Path) -> None:
    by_rule = rules(rebalancing(12, 10), tmp_path)
    assert list(by_rule) == ["rebalance-storm"]
    assert by_rule["rebalance-storm"]["subject"] == {"group": "billing"}
    assert by_rule["rebalance-storm"]["severity"] == "warning"


def test_few_or_rare_rebalances_are_no_trouble(tmp_path: Path) -> None:
    assert rules(rebalancing(5, 10), tmp_path) == {}
    assert rules(rebalancing(12, 90), tmp_path) == {}


def test_long_rebalances() -> None:
    """One of 3.0 s, the initial delay, and one of 5.0 s."""
    reported = report("diagnose", FIXTURES / "captures" / "ck-group-range.pcap")
    (finding,) = reported["findings"]
    assert (finding["rule"], finding["severity"]) == ("long-rebalances", "notice")
    assert finding["subject"] == {"group": "grp-range"}
    assert finding["cost"]["time_ns"] == 5_000_987_000
    options = "--set", "long-rebalances.seconds=3", "--set", "long-rebalances.warning=8"
    (both,) = report("diagnose", FIXTURES / "captures" / "ck-group-range.pcap", *options)[
        "findings"
    ]
    assert (both["count"], both["severity"]) == (2, "warning")
    assert "longest 5.0 s" in both["what"]


def test_a_rebalance_of_the_initial_delay_is_not_long() -> None:
    limit = "--set", "long-rebalances.seconds=5.1"
    reported = report("diagnose", FIXTURES / "captures" / "ck-group-range.pcap", *limit)
    assert reported["findings"] == []


def test_rebalances_of_a_deployment_are_a_notice(tmp_path: Path) -> None:
    assert rules(rebalancing(12, 1), tmp_path)["rebalance-storm"]["severity"] == "notice"


def test_a_member_that_leaves_and_comes_back(tmp_path: Path) -> None:
    story = Story().join(1)
    story.wait(300)
    story.leave()
    story.wait(20)
    story.join(2)
    by_rule = rules(story, tmp_path)
    assert list(by_rule) == ["poll-timeouts"]
    assert by_rule["poll-timeouts"]["confidence"] == "medium"
    assert by_rule["poll-timeouts"]["cost"]["time_ns"] > 20 * 10**9


def test_a_member_that_states_its_reason(tmp_path: Path) -> None:
    story = Story().join(1).leave(reason="consumer poll timeout has expired.")
    assert rules(story, tmp_path)["poll-timeouts"]["confidence"] == "high"


def test_a_member_that_is_restarted(tmp_path: Path) -> None:
    story = Story().join(1).leave(reason="the consumer is being closed")
    story.close()
    story.join(2, 1)
    assert rules(story, tmp_path) == {}


def lagging(produced: int, consumed: int, every: float = 1) -> Story:
    """Produce and consume so many records in each of sixty rounds."""
    story = Story()
    for number in range(60):
        story.fetch(end=500 + number * produced)
        story.commit(number * consumed).wait(every)
    return story


def test_a_group_that_does_not_keep_up(tmp_path: Path) -> None:
    by_rule = rules(lagging(200, 100), tmp_path)
    assert list(by_rule) == ["growing-lag"]
    assert by_rule["growing-lag"]["subject"] == {"group": "billing", "topic": "orders"}


def test_a_lag_that_stays_or_hardly_grows(tmp_path: Path) -> None:
    assert rules(lagging(200, 200), tmp_path) == {}
    assert rules(lagging(200, 190), tmp_path) == {}
    assert rules(lagging(110, 100), tmp_path) == {}
    assert rules(lagging(200, 100, every=0.4), tmp_path) == {}
