"""The examples of docs/spark.md run, and their results are right."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from kafkawire.spark import read
from kafkawire.spark.options import SETTERS
from tests.conftest import FIXTURES, ROOT

from .conftest import rows_of

PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
CAPTURES = [
    str(FIXTURES / "captures" / name)
    for name in ("ck-848.pcap", "ck-group-range.pcap", "kp22-old-0.9.pcap")
]


def test_the_worked_example(spark: SparkSession) -> None:
    start = PAGE.index("## SQL over the tables")
    section = PAGE[start : PAGE.index("## The job")]
    known = {"spark": spark, "read": read, "captures": CAPTURES}
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(code, "docs/spark.md", "exec"), known)
    slow, rebalances, old = (
        spark.sql(query).collect() for query in re.findall(r"```sql\n(.*?)```", section, re.DOTALL)
    )
    exchanges = [row for row in rows_of(CAPTURES, "exchanges") if row["latency_ns"] is not None]
    assert sum(row["requests"] for row in slow) == sum(len(row["topics"]) for row in exchanges)
    assert max(row["p99_ms"] for row in slow) == slow[0]["p99_ms"]
    events = rows_of(CAPTURES, "group_events")
    ended = [row for row in events if row["event"] == "rebalance_ended"]
    assert sum(row["rebalances"] for row in rebalances) == len(ended) > 0
    versions = {
        (used["api_name"], used["api_version"])
        for row in rows_of(CAPTURES, "connections")
        for used in row["versions"]
    }
    found = {(row["api_name"], row["api_version"]) for row in old}
    assert ("Produce", 1) in found
    assert ("FindCoordinator", 0) in versions - found
    assert found <= versions


def test_every_option_is_documented() -> None:
    table = PAGE[PAGE.index("## Options") : PAGE.index("## What is exact")].lower()
    assert [name for name in SETTERS if f"`{name.lower()}`" not in table] == []
