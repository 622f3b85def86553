"""Topics by their ids: names that messages state, and those of Kafka's own ids."""

from __future__ import annotations

from kafkawire.capture.exchanges.topic_ids import TopicNames

METADATA = bytes(15) + b"\x01"
OTHER = bytes(15) + b"\x02"


def test_the_first_name_of_an_id_wins_and_shows_in_topics_of_before() -> None:
    names = TopicNames()
    topic = names.topic(None, OTHER)
    assert (topic.name, names.has_unknown, names.unknown) == (None, True, [OTHER])
    names.add("orders", OTHER)
    names.add("payments", OTHER)
    assert (topic.name, names.has_unknown, names.named) == ("orders", False, [OTHER])


def test_the_topic_of_metadata_needs_no_message() -> None:
    names = TopicNames()
    assert names.topic(None, METADATA).name == "__cluster_metadata"
    assert not names.has_unknown
    stated = TopicNames()
    stated.add("orders", METADATA)
    assert stated.topic(None, METADATA).name == "__cluster_metadata"
    assert stated.named == [METADATA]
