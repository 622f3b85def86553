"""Who produces to which topics, and who consumes from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire.capture.multifile import Traffic
from kafkawire.notebook.summary import Progress
from kafkawire.reports import topology
from kafkawire.reports.reading import Reading
from kafkawire.reports.topology import Topology
from kafkawire_cli.render.page.over_time import MAX_NODES, topology_json
from tests.reports.diagnosis.stories import Story, batch


def collected(story: Story, folder: Path) -> Topology:
    captures = Reading(Traffic([story.save(folder / "a.pcap")]), Progress())
    found = Topology(captures)
    captures.read(found)
    captures.name_topics()
    return found


def links(story: Story, folder: Path) -> dict[tuple[object, ...], tuple[int, int, bool]]:
    return {
        tuple(key): (link.exchanges, link.errors, link.bytes > 0)
        for key, link in collected(story, folder).links.items()
    }


def test_producers_and_consumers(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.produce(client_id="shop")
    story.fetch(batch(), client_id="stock").fetch(client_id="stock")
    story.fetch(batch(), topic="returns", client_id="shop")
    assert links(story, tmp_path) == {
        ("shop", "orders", "produced"): (3, 0, True),
        ("stock", "orders", "fetched"): (2, 0, True),
        ("shop", "returns", "fetched"): (1, 0, True),
    }


def test_errors_of_partitions(tmp_path: Path) -> None:
    story = Story().produce(code=3).produce().fetch(code=6)
    assert links(story, tmp_path) == {
        ("tester", "orders", "produced"): (2, 1, True),
        ("tester", "orders", "fetched"): (1, 1, False),
    }


def test_followers_are_not_consumers(tmp_path: Path) -> None:
    topics = [{"topic": "orders", "partitions": [{"partition": 0}]}]
    partition = {"partitionIndex": 0, "records": batch()}
    response = {"responses": [{"topic": "orders", "partitions": [partition]}]}
    story = Story().exchange("Fetch", 4, replicaId=2, topics=topics, response=response)
    assert links(story, tmp_path) == {}


def test_links_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "MAX_LINKS", 2)
    story = Story()
    for number in range(5):
        story.produce(client_id=f"c{number}")
    assert links(story, tmp_path) == {
        ("(others)", "orders", "produced"): (3, 0, True),
        ("c0", "orders", "produced"): (1, 0, True),
        ("c1", "orders", "produced"): (1, 0, True),
    }


def test_a_picture_has_few_nodes_and_all_links(tmp_path: Path) -> None:
    story = Story()
    for number in range(20):
        story.produce(batch(100 * (number + 1)), client_id=f"p{number}", topic=f"t{number}")
    drawn = topology_json(collected(story, tmp_path), [])
    assert len(drawn["producers"]) == len(drawn["topics"]) == MAX_NODES
    assert drawn["producers"][0]["name"] == "p19"
    assert sum(link["exchanges"] for link in drawn["links"]) == 20
    (others,) = [link for link in drawn["links"] if link["client"] < 0]
    assert (others["topic"], others["exchanges"]) == (-1, 20 - MAX_NODES)
