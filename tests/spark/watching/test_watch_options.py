"""Options of a watch, and the options left for the reader."""

from __future__ import annotations

import pytest

from kafkawire.spark.errors import BadOption
from kafkawire.spark.options import parse
from kafkawire.spark.watch import Finished, WatchOptions, parse_watch_options


def test_watch_options_and_the_rest() -> None:
    given = {
        "Finished": "still", "stillSeconds": "2.5", "pollSeconds": "1s", "batchBytes": "64m",
        "STATEBYTES": "100k", "idleTimeout": "60", "ports": [9092], "splitBytes": "9k",
    }  # fmt: skip
    options_of_watch, rest = parse_watch_options(given)
    assert options_of_watch == WatchOptions(
        Finished.STILL, 2.5, 1, 64 << 20, 100 << 10, 60_000_000_000
    )
    options = parse(rest)
    assert options.reassembly.silence_ns == 60_000_000_000
    assert (options.ports, options.split_bytes, options.others) == ((9092,), 9 << 10, {})
    assert parse_watch_options({}) == (WatchOptions(), {})


@pytest.mark.parametrize(
    ("name", "value"), [("finished", "now"), ("pollSeconds", "0"), ("stateBytes", "many")]
)
def test_invalid_options(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=f"option {name}: invalid value '{value}'"):
        parse_watch_options({name: value})
