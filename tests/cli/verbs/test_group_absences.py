"""`kafkawire groups`, `report` and `diagnose`: silent members, and groups without members."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture.multifile import Traffic
from kafkawire.notebook.summary import Progress
from kafkawire.protocol.error_code import ErrorCode
from kafkawire.reports.groups.absences import total_ns
from kafkawire.reports.groups.histories import Groups
from kafkawire.reports.groups.silences import Silences
from kafkawire.reports.reading import Reading
from kafkawire.reports.tables import read_report_tables
from kafkawire.reports.watermarks import Watermarks
from kafkawire_cli.render.page.groups import group_json
from tests.cli.reports import report, text
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story, rules

SECOND = 10**9
INCIDENTS = FIXTURES / "incidents"


def heartbeat(
    story: Story,
    member: str = "m",
    connection: int = 0,
    code: int = 0,
    client_id: str = "tester",
) -> Story:
    return story.exchange(
        "Heartbeat",
        3,
        connection,
        client_id,
        groupId="billing",
        memberId=member,
        generationId=1,
        response={"errorCode": int(code)},
    )


def group_of(story: Story, folder: Path, name: str = "story") -> Any:
    (group,) = report("groups", story.save(folder / f"{name}.pcap"))["groups"]
    return group


def lengths(group: Any) -> list[tuple[str, int]]:
    """The kinds of absences, and how many whole seconds each lasted."""
    return [(one["event"], one["duration_ns"] // SECOND) for one in group["absences"]]


def test_time_without_members_is_unavailable(tmp_path: Path) -> None:
    story = Story().join(1).leave().wait(5).join(3, member="again")
    group = group_of(story, tmp_path)
    assert lengths(group) == [("no_members", 5)]
    (absence,) = group["absences"]
    assert absence in group["timeline"]
    assert group["unavailable_ns"] == group["stopped_ns"] + absence["duration_ns"]
    shown = text("groups", tmp_path / "story.pcap")
    assert "no members for 5.00 s, until " in shown
    assert "unavailable for 5.01 s" in shown


def test_a_group_with_members_that_sent_nothing_is_not_without_members(tmp_path: Path) -> None:
    """The response to the leader, or the name of the leader, shows that there are others."""
    for leader, members in (("m", [{"memberId": "m"}, {"memberId": "b"}]), ("b", [])):
        story = Story()
        story.exchange(
            "JoinGroup",
            5,
            groupId="billing",
            memberId="m",
            response={"generationId": 1, "memberId": "m", "leader": leader, "members": members},
        )
        story.exchange("SyncGroup", 3, groupId="billing", memberId="m", generationId=1)
        group = group_of(story.leave().wait(5).join(3, member="again"), tmp_path, leader)
        assert lengths(group) == [("out_of_group", 5)]
        assert group["unavailable_ns"] < SECOND


def test_a_silent_member_is_shown_and_a_group_of_silent_members_is_unavailable(
    tmp_path: Path,
) -> None:
    story = heartbeat(Story().join(1)).wait(12)
    heartbeat(story)
    group = group_of(story, tmp_path)
    assert lengths(group) == [("silent", 12)]
    assert group["unavailable_ns"] >= 12 * SECOND
    assert "is silent (no heartbeat, no fetch) for 12.0 s, until " in text(
        "groups", tmp_path / "story.pcap"
    )


def test_a_group_is_available_while_another_member_sends_heartbeats(tmp_path: Path) -> None:
    story = heartbeat(Story().join(1))
    for _ in range(6):
        heartbeat(story, "b", connection=1, client_id="other").wait(2)
    group = group_of(heartbeat(story), tmp_path)
    assert lengths(group) == [("silent", 12)]
    assert group["unavailable_ns"] < SECOND


def test_fetches_and_a_rebalance_that_takes_long_are_no_silence(tmp_path: Path) -> None:
    story = Story().join(1)
    for _ in range(4):
        story.fetch(connection=1).wait(5)
    story.request("JoinGroup", 5, groupId="billing", memberId="m")
    sent = story.last_request
    story.wait(60).fetch(connection=1)
    story.last_request = sent
    story.respond("JoinGroup", 5, generationId=2, memberId="m", leader="m")
    assert lengths(group_of(story, tmp_path)) == []


def test_a_short_session_timeout_is_the_limit(tmp_path: Path) -> None:
    found = {}
    for timeout_ms in (6_000, 45_000):
        story = Story()
        story.exchange(
            "JoinGroup",
            5,
            groupId="billing",
            memberId="m",
            sessionTimeoutMs=timeout_ms,
            response={"generationId": 1, "memberId": "m", "leader": "m"},
        )
        heartbeat(story.wait(7))
        found[timeout_ms] = lengths(group_of(story, tmp_path, str(timeout_ms)))
    assert found == {6_000: [("silent", 7)], 45_000: []}


@pytest.mark.parametrize("member_id", ["m", ""])
def test_an_expelled_member_is_removed_once_and_costs_its_silence(
    tmp_path: Path, member_id: str
) -> None:
    """librdkafka gives up its member id before the last heartbeat."""
    story = heartbeat(Story().join(1)).wait(20)
    heartbeat(story, member_id, code=ErrorCode.UNKNOWN_MEMBER_ID)
    story.join(3, member="again")
    found = rules(story, tmp_path)["expelled-members"]
    assert found["cost"]["time_ns"] // SECOND == 20
    assert "20.0 s" in found["what"]
    group = group_of(story, tmp_path)
    events = Counter(one["event"] for one in group["timeline"])
    assert events["removed"] == 1
    (removed,) = [one for one in group["timeline"] if one["event"] == "removed"]
    assert removed["member_id"] == "m"


def test_the_silence_before_an_error_counts_once_and_only_if_it_was_just_then(
    tmp_path: Path,
) -> None:
    story = heartbeat(Story().join(1)).wait(20)
    for _ in range(3):
        heartbeat(story, code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert rules(story, tmp_path)["expelled-members"]["cost"]["time_ns"] // SECOND == 20
    story = heartbeat(heartbeat(Story().join(1)).wait(20))
    for _ in range(4):
        heartbeat(story.wait(5))
    heartbeat(story, code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert rules(story, tmp_path)["expelled-members"]["cost"]["time_ns"] < SECOND


def test_a_storm_counts_the_time_without_members(tmp_path: Path) -> None:
    story = Story()
    for generation in range(1, 11):
        story.join(generation, member=f"m{generation}").leave(member=f"m{generation}").wait(8)
    found = rules(story, tmp_path)["rebalance-storm"]
    assert found["cost"]["time_ns"] // SECOND == 9 * 8
    assert found["severity"] == "critical"


def test_groups_and_diagnose_agree_on_an_incident() -> None:
    path = INCIDENTS / "poll-timeouts.pcap.gz"
    (group,) = report("groups", path)["groups"]
    (finding,) = report("diagnose", path)["findings"]
    assert abs(group["unavailable_ns"] - finding["cost"]["time_ns"]) < SECOND // 10


def test_the_table_and_the_page_have_the_absences_of_the_report() -> None:
    path = INCIDENTS / "expelled-members.pcap.gz"
    (group,) = report("groups", path)["groups"]
    captures = Reading(Traffic([path]), Progress())
    ((_, batch),) = read_report_tables(captures, ["absences"])
    rows = batch.to_pylist()
    expected = [(one["event"], one["duration_ns"], one["client_id"]) for one in group["absences"]]
    assert [(row["kind"], row["duration_ns"], row["client_id"]) for row in rows] == expected
    captures = Reading(Traffic([path]), Progress())
    watermarks, silences = Watermarks(captures), Silences()
    groups = Groups(captures, watermarks, silences)
    captures.read(watermarks, silences, groups)
    page = group_json(groups.all[0], 0)
    assert [one["duration_ns"] for one in page["absences"]] == [ns for _, ns, _ in expected]
    assert [one["all"] for one in page["absences"]] == [
        kind == "no_members" for kind, *_ in expected
    ]
    assert page["unavailable_ns"] == group["unavailable_ns"] > 10 * SECOND


def test_each_moment_counts_once() -> None:
    assert total_ns([]) == 0
    assert total_ns([(5, 9), (0, 3), (1, 2), (2, 6)]) == 9
    assert total_ns([(0, 10), (2, 4), (8, 12), (20, 21)]) == 13
