"""What share groups acquired and acknowledged: in `groups`, in JSON, in the table `deliveries`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkawire.capture.multifile import Traffic
from kafkawire.notebook.summary import Progress
from kafkawire.protocol.json_form import uuid_text
from kafkawire.reports.reading import Reading
from kafkawire.reports.tables import read_report_tables
from tests.capture.written import Scenario
from tests.cli.reports import report, text

ORDERS = uuid_text(bytes(range(16)))
VERSION = 2
REFUSED = 121
"""INVALID_RECORD_STATE."""


def ranges(*batches: tuple[int, int, list[int]]) -> list[dict[str, Any]]:
    """Acknowledgement batches: first and last offset, types."""
    return [
        {"firstOffset": first, "lastOffset": last, "acknowledgeTypes": types}
        for first, last, types in batches
    ]


def exchange(
    scenario: Scenario,
    api: str,
    acknowledged: list[dict[str, Any]],
    acquired: list[tuple[int, int, int]] | None = None,
    code: int = 0,
    member: str = "a",
) -> None:
    """A ShareFetch or a ShareAcknowledge for partition 3."""
    topics = [
        {"topicId": ORDERS, "partitions": [
            {"partitionIndex": 3, "acknowledgementBatches": acknowledged}
        ]}
    ]  # fmt: skip
    scenario.request(api, VERSION, groupId="g", memberId=member, topics=topics)
    partition: dict[str, Any] = {"partitionIndex": 3}
    if acquired is None:
        partition["errorCode"] = code
    else:
        partition["records"] = ""
        partition["acknowledgeErrorCode"] = code
        partition["acquiredRecords"] = [
            {"firstOffset": first, "lastOffset": last, "deliveryCount": count}
            for first, last, count in acquired
        ]
    scenario.respond(api, VERSION, responses=[{"topicId": ORDERS, "partitions": [partition]}])


def written(folder: Path) -> Path:
    scenario = Scenario()
    exchange(scenario, "ShareFetch", [], [(0, 9, 1)])
    exchange(scenario, "ShareFetch", ranges((0, 4, [1]), (5, 9, [1, 2, 2, 3, 0])), [(6, 7, 2)])
    exchange(scenario, "ShareAcknowledge", ranges((6, 6, [4])))
    exchange(scenario, "ShareAcknowledge", ranges((7, 7, [1])), code=REFUSED)
    exchange(scenario, "ShareFetch", ranges((6, 6, [9])), [(7, 7, 5)], member="b")
    return scenario.save(folder / "share.pcap")


def table(path: Path) -> list[dict[str, Any]]:
    ((_, batch),) = read_report_tables(Reading(Traffic([path]), Progress()), ["deliveries"])
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def test_what_a_share_group_acquired_and_acknowledged(tmp_path: Path) -> None:
    path = written(tmp_path)
    (group,) = report("groups", path)["groups"]
    assert group["protocol"] == "share"
    members = {one["member_id"]: one["deliveries"] for one in group["members"]}
    assert members["a"] == {
        "acquired": 12, "redelivered": 2, "max_delivery_count": 2, "gap": 1, "accepted": 6,
        "released": 2, "rejected": 1, "renewed": 1, "unknown": 0, "refused": 1,
    }  # fmt: skip
    assert (members["b"]["redelivered"], members["b"]["unknown"]) == (1, 1)
    for name, value in group["deliveries"].items():
        both = [one[name] for one in members.values()]
        assert value == (max(both) if name == "max_delivery_count" else sum(both))
    shown = text("groups", path)
    assert "13 records acquired, 3 not for the first time (delivery count up to 5)" in shown


def test_the_table_of_deliveries(tmp_path: Path) -> None:
    path = written(tmp_path)
    rows = table(path)
    (group,) = report("groups", path)["groups"]
    for row, member in zip(rows, group["members"], strict=True):
        assert (row["topic"], row["partition"]) == (ORDERS, 3)
        assert {name: row[name] for name in member["deliveries"]} == member["deliveries"]
    assert rows[0]["time"] < rows[0]["until"]
    assert rows[0]["until"] < rows[1]["until"]


def test_a_huge_range_of_a_hostile_client_is_a_number(tmp_path: Path) -> None:
    scenario = Scenario()
    hostile = ranges((0, 2**62, [1]), (5, 1, [1]), (0, 2**62, [1, 3]), (0, 5, []))
    exchange(scenario, "ShareFetch", hostile, [(0, 2**62, 1)] * 3)
    path = scenario.save(tmp_path / "hostile.pcap")
    (group,) = report("groups", path)["groups"]
    deliveries = group["deliveries"]
    assert (deliveries["accepted"], deliveries["rejected"]) == (2**62 + 2, 1)
    assert deliveries["acquired"] == 3 * (2**62 + 1)
    (row,) = table(path)
    assert (row["accepted"], row["acquired"]) == (2**62 + 2, 2**63 - 1)
