"""Rules about clocks of producers and brokers."""

from __future__ import annotations

from pathlib import Path

from tests.capture.wire import START_NS

from .stories import NOW_MS, Story, batch_of, rules


def stamped(seconds: float, times: int = 25, drift: float = 0) -> Story:
    story = Story()
    for number in range(times):
        sent_ms = (START_NS + len(story.packets) * 10**6) // 10**6 + number * 1000
        timestamp = sent_ms + int((seconds + drift * number) * 1000)
        story.produce(batch_of([10], timestamp=timestamp)).wait(1)
    return story


def test_a_producer_whose_clock_differs(tmp_path: Path) -> None:
    assert rules(stamped(5), tmp_path)["clock-offset"]["what"] == "its clock is 5.0 s ahead"
    assert rules(stamped(-60), tmp_path)["clock-offset"]["what"] == "its clock is 60.0 s behind"


def test_clocks_that_agree_and_records_that_wait(tmp_path: Path) -> None:
    assert rules(stamped(1), tmp_path) == {}
    assert rules(stamped(-20), tmp_path) == {}
    assert rules(stamped(5, times=15), tmp_path) == {}
    assert rules(stamped(5, drift=1), tmp_path) == {}


def test_timestamps_of_another_unit_are_not_those_of_a_clock(tmp_path: Path) -> None:
    seconds_as_milliseconds = -NOW_MS / 1000 * 0.999
    assert list(rules(stamped(seconds_as_milliseconds), tmp_path)) == ["record-timestamps"]


def appending(
    *clocks: float, times: int = 12, latency: float = 0.1, drift: float = 0, code: int = 0
) -> Story:
    """Produce to brokers, the clocks of which are so many seconds ahead; append as stated."""
    story = Story()
    story.broker_ports = {1: 9093, 2: 9094}
    for number in range(times):
        for broker, seconds in enumerate(clocks):
            story.request("Produce", 8, broker, acks=-1, timeoutMs=100, topicData=[])
            story.wait(latency)
            partition = {
                "index": 0,
                "errorCode": code,
                "logAppendTimeMs": story.next_ns // 10**6 + int((seconds + drift * number) * 1000),
            }
            topic = {"name": "orders", "partitionResponses": [partition]}
            story.respond("Produce", 8, broker, responses=[topic])
            story.wait(1)
    return story


def test_a_broker_whose_clock_differs_from_those_of_others(tmp_path: Path) -> None:
    one = rules(appending(0, 3, 0.1), tmp_path)["broker-clocks"]
    assert one["subject"] == {"broker": "10.0.0.2:9093"}
    assert one["what"] == "its clock is 2.9 s ahead of that of 10.0.0.2:9092"
    one = rules(appending(0, 0, -8), tmp_path)["broker-clocks"]
    assert one["what"] == "its clock is 7.9 s behind that of 10.0.0.2:9092"
    assert one["subject"] == {"broker": "10.0.0.2:9094"}


def test_a_single_broker_whose_clock_differs_from_that_of_the_capture(tmp_path: Path) -> None:
    one = rules(appending(-60), tmp_path)["broker-clocks"]
    assert (one["severity"], one["confidence"]) == ("notice", "low")
    assert one["what"] == "its clock is 59.9 s behind the clock of the capture"


def test_clocks_of_brokers_that_agree_or_of_which_little_is_known(tmp_path: Path) -> None:
    assert rules(appending(5, 5.5, 5), tmp_path) == {}
    assert rules(appending(0, 3, times=9), tmp_path) == {}
    assert "broker-clocks" not in rules(appending(0, 3, latency=4), tmp_path)
    assert rules(appending(0, 3, drift=-0.2), tmp_path) == {}
    assert rules(appending(0, 3, code=10), tmp_path).keys() <= {"oversize-records"}
