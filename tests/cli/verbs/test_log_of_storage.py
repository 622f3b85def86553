"""`kafkawire log` reads the log directories that `kafkawire.storage` writes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from kafkawire.storage import FileDisk
from kafkawire_cli.main import app
from tests.storage.logs import ORDERS, TIME, filled
from tests.storage.managers import started


def test_a_directory(tmp_path: Path) -> None:
    logs = started({"a": FileDisk(tmp_path)})
    log = filled(logs.get_or_create(ORDERS, TIME, topic_id=bytes(range(16))))
    log.update_high_watermark(60)
    logs.shutdown(TIME)
    found = CliRunner().invoke(app, ["log", str(tmp_path)])
    assert (found.exit_code, found.stderr) == (0, "")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    kinds = Counter(
        Path(row["file"]).name.partition(".")[2] or Path(row["file"]).name for row in rows
    )
    assert kinds["log"] == 90
    assert kinds["index"] > 10
    assert kinds["timeindex"] > 10
    names = {Path(row["file"]).name for row in rows}
    assert {
        "meta.properties",
        "partition.metadata",
        "leader-epoch-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    } <= names
