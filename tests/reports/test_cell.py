"""Cells that are merged count what one cell counts of all their exchanges."""

from __future__ import annotations

import random
from typing import Any

from kafkawire.capture.exchanges.exchanges import Exchange
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables.extraction.entities import Entities
from kafkawire.protocol.frame import SIZE
from kafkawire.reports.cell import Cell, Sizes, bounded, merged
from kafkawire.reports.quantiles import Quantiles

Counts = Cell[Quantiles]


def create() -> Counts:
    return Cell(Quantiles())


def exchange(rng: random.Random) -> Exchange:
    """Make a request, a response, or both."""
    request = Row(1, 1000, "request", rng.randrange(500), Status.OK, api_key=1)
    response = request._replace(
        direction="response",
        length=rng.randrange(500),
        time_ns=1000 + rng.randrange(10**9),
        request_time_ns=rng.choice([1000, None]),
    )
    sides = rng.choice([(request, response), (request, None), (None, response)])
    return Exchange(0, "a:1", "b:9092", *sides)


def entities(rng: random.Random) -> Entities:
    made = Entities(TopicNames())
    made.error_codes = dict.fromkeys(rng.sample(range(1, 5), rng.randrange(3)))
    return made


def state(cell: Counts) -> dict[str, Any]:
    """List all that a cell knows."""
    names = (*Sizes.__slots__, "codes")
    sizes = {name: getattr(cell, name) for name in names}
    shares = [cell.latency.at(share / 20) for share in range(21)]
    return {**sizes, "latency": (cell.latency.count, shares)}


def test_merged_cells_count_what_one_cell_counts() -> None:
    rng = random.Random(1)
    whole, parts = create(), {number: create() for number in range(40)}
    for _ in range(2000):
        counted, among = exchange(rng), entities(rng)
        whole.count(counted, among)
        parts[rng.randrange(40)].count(counted, among)
    quarters = merged(parts, lambda number: number // 10)
    assert list(quarters) == [0, 1, 2, 3]
    assert state(merged(quarters, lambda _: 0)[0]) == state(whole)


def test_a_cell_counts_each_side_of_an_exchange() -> None:
    cell, among = create(), Entities(TopicNames())
    among.error_codes = {3: None, 5: None}
    request = Row(1, 1000, "request", 96, Status.OK, api_key=1)
    response = request._replace(direction="response", time_ns=1500, request_time_ns=1000)
    for sides in ((request, response), (request, None), (None, response)):
        cell.count(Exchange(0, "a:1", "b:9092", *sides), among)
    assert (cell.exchanges, cell.requests, cell.responses, cell.errors) == (3, 2, 2, 2)
    assert cell.bytes == 4 * (96 + SIZE)
    assert cell.codes == {3: 2, 5: 2}
    assert (cell.latency.min, cell.latency.max) == (500, 500)


def test_keys_beyond_the_bound_share_a_cell() -> None:
    cells: dict[str, Counts] = {}
    first = bounded(cells, "a", create, 1, "(others)")
    others = bounded(cells, "b", create, 1, "(others)")
    assert bounded(cells, "c", create, 1, "(others)") is others
    assert bounded(cells, "a", create, 1, "(others)") is first
    assert list(cells) == ["a", "(others)"]
