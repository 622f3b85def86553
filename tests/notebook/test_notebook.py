"""Captures in Python and Jupyter."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from kafkawire.capture import tables
from kafkawire.errors import (
    BadMagic,
    CaptureError,
    IncompleteCaptureWarning,
    KafkaWireError,
    MissingPackage,
    QueryError,
)
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.notebook.html import MAX_NODES, MAX_ROWS, table_html, tree_html
from kafkawire.reports.tables import REPORT_TABLES
from tests.capture import wire
from tests.capture.written import Scenario
from tests.conftest import FIXTURES
from tests.notebook.running import NOTEBOOK

CAPTURES = FIXTURES / "captures"
TRANSACTIONS = CAPTURES / "ck-txn.pcap"


@pytest.mark.parametrize("name", tables.TABLES)
def test_tables_in_every_form(name: str) -> None:
    table = kafkawire.open_capture(TRANSACTIONS).table(name)
    wanted = [row for batch in tables.read(TRANSACTIONS, name) for row in batch.to_pylist()]
    assert table.to_arrow().to_pylist() == wanted == list(table)
    assert len(table.to_pandas()) == len(table.to_polars()) == len(wanted)
    assert list(table.to_polars().columns) == tables.TABLES[name].schema.names
    assert "<table>" in table._repr_html_()


def test_attributes_are_tables() -> None:
    capture = kafkawire.open_capture(TRANSACTIONS)
    assert [getattr(capture, name).name for name in tables.TABLES] == list(tables.TABLES)


def test_tables_of_reports() -> None:
    with kafkawire.open_capture(CAPTURES / "ck-group-range.pcap") as capture:
        for name, table in REPORT_TABLES.items():
            assert getattr(capture, name).to_arrow().schema == table.schema
        assert capture.findings.to_arrow().num_rows == len(capture.diagnose())
        query = "SELECT sum(requests) AS requests FROM load"
        (both,) = capture.sql(f"{query} UNION SELECT count(request_bytes) FROM exchanges")
        assert both["requests"] > 0
        assert {row["group_id"] for row in capture.lag} == {"grp-range"}


def test_patterns_and_several_files() -> None:
    one, both = CAPTURES / "ck-sll1.pcap", str(CAPTURES / "ck-sll*.pcap")
    capture = kafkawire.open_capture(both, TRANSACTIONS, one)
    assert set(capture.files) == {str(one), str(TRANSACTIONS)}


def test_what_a_capture_lacks_is_a_warning(tmp_path: Path) -> None:
    """As the commands note it: once the table is read, and not where the table shows it."""
    story = Scenario().request("Metadata", 1, topics=[{"name": "orders"}]).respond("Metadata", 1)
    cut = [one._replace(data=one.data[:82], original=len(one.data)) for one in story.packets]
    (tmp_path / "cut.pcap").write_bytes(wire.pcap(cut))
    whole = story.save(tmp_path / "whole.pcap")
    with kafkawire.open_capture(tmp_path / "cut.pcap") as capture:
        with pytest.warns(IncompleteCaptureWarning, match="not whole in the capture"):
            capture.records.to_arrow()
        with pytest.warns(IncompleteCaptureWarning, match="not whole in the capture"):
            capture.sql("SELECT count(*) FROM exchanges")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert capture.problems.to_arrow().num_rows > 0
            kafkawire.open_capture(whole).records.to_arrow()


def test_a_directory_stands_for_its_captures(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="No capture files"):
        kafkawire.open_capture(folder)
    for name in ("a.pcap.1", "b.pcap", "notes.txt"):  # rotated: by content
        data = b"text" if name == "notes.txt" else TRANSACTIONS.read_bytes()
        (folder / name).write_bytes(data)
    for source in (folder, tmp_path / "*"):
        files = kafkawire.open_capture(source).files
        assert [Path(file).name for file in files] == ["a.pcap.1", "b.pcap"]


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kafkawire.open_capture(str(tmp_path / "*.pcap"))
    with pytest.raises(ValueError, match="no captures"):
        kafkawire.open_capture()
    (tmp_path / "x.pcap").write_bytes(b"nothing like it")
    with pytest.raises(BadMagic) as error:
        kafkawire.open_capture(tmp_path / "x.pcap")
    assert "x.pcap" in error.value.__notes__[0]
    assert issubclass(BadMagic, CaptureError)


def test_queries() -> None:
    with kafkawire.open_capture(TRANSACTIONS) as capture:
        found = capture.sql("SELECT api_name, count(*) AS n FROM exchanges GROUP BY 1 ORDER BY 1")
        assert next(iter(found)) == {"api_name": "AddPartitionsToTxn", "n": 2}
        assert found.to_pandas().n.sum() == found.to_polars()["n"].sum() == 25
        assert len(capture.exchanges.sql("WHERE api_name = 'EndTxn'")) == 2
        assert len(capture.exchanges.sql("SELECT DISTINCT api_key FROM exchanges")) == 8
        with pytest.raises(QueryError, match="apiname"):
            capture.sql("SELECT apiname FROM exchanges")
        capture.close()
        assert len(capture.sql("FROM exchanges LIMIT 1")) == 1


def test_messages_are_objects_with_their_places() -> None:
    capture = kafkawire.open_capture(TRANSACTIONS)
    found = list(capture.messages(api="Produce", direction="request"))
    rows = capture.sql(
        "SELECT packet, time_ns, client FROM messages "
        "WHERE api_name = 'Produce' AND direction = 'request'"
    )
    capture.close()
    assert [{"packet": m.packet, "time_ns": m.time_ns, "client": m.client} for m in found] == list(
        rows
    )
    assert isinstance(found[0].message, ProduceRequest)
    assert found[0].file == str(TRANSACTIONS)
    assert len(list(capture.messages(api={"Produce", "EndTxn"}))) == 12
    assert "tx-topic" in found[0]._repr_html_()
    with pytest.raises(ValueError, match="unknown API 'Fech'"):
        capture.messages(api="Fech")
    with pytest.raises(ValueError, match="direction"):
        capture.messages(direction="up")


def test_records_are_redacted() -> None:
    capture = kafkawire.open_capture(TRANSACTIONS, redact=True)
    assert all(row["value"].startswith(b"sha256:") for row in capture.records)
    plain = kafkawire.open_capture(TRANSACTIONS)
    shown, hidden = (
        next(iter(one.messages(api="Produce", direction="request"))).json()
        for one in (plain, capture)
    )
    assert shown["topicData"][0]["name"] == hidden["topicData"][0]["name"]
    assert shown != hidden


def test_summary_and_groups() -> None:
    capture = kafkawire.open_capture(CAPTURES / "ck-group-range.pcap")
    summary = capture.summary()
    assert {one["api_name"] for one in summary.apis} >= {"Fetch", "JoinGroup"}
    (group,) = capture.groups()
    assert (group.group_id, len(group.json["members"])) == ("grp-range", 2)
    assert "grp-range" in summary._repr_html_()


HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e&"


def test_html_is_escaped_and_bounded() -> None:
    rows = [[HOSTILE, HOSTILE.encode(), [HOSTILE], None]] * (MAX_ROWS * 10)
    for made in (
        table_html([HOSTILE] * 4, rows, title=HOSTILE, total=len(rows)),
        tree_html(HOSTILE, {HOSTILE: [{HOSTILE: HOSTILE}] * (MAX_NODES * 10)}),
    ):
        assert "<script" not in made
        assert "\x1b" not in made
        assert "\u202e" not in made
        assert "&lt;script&gt;" in made
        assert len(made) < 200_000
    assert table_html(["a"], [["b" * 10_000]]).count("b") < 300


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("pandas", "capture.exchanges.to_pandas()"),
        ("polars", "capture.exchanges.to_polars()"),
        ("duckdb", "capture.sql('SELECT 1')"),
    ],
)
def test_a_missing_package_names_its_extra(
    package: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackage, match=rf"{package} is not installed: pip install 'kafkawire"
    ):
        eval(code, {"capture": kafkawire.open_capture(TRANSACTIONS)})


def test_repr_counts_the_files() -> None:
    one, two = TRANSACTIONS, CAPTURES / "ck-group-range.pcap"
    assert repr(kafkawire.open_capture(one)) == f"<Capture of 1 file: {one}>"
    assert repr(kafkawire.open_capture(one, two)) == f"<Capture of 2 files: {one}, {two}>"
    four = [one, two, CAPTURES / "ck-848.pcap", CAPTURES / "ck-sll1.pcap"]
    names = ", ".join(map(str, four[:3]))
    assert repr(kafkawire.open_capture(*four)) == f"<Capture of 4 files: {names}, ...>"


def test_packages_are_imported_only_when_needed() -> None:
    code = (
        "import kafkawire, sys; "
        f"kafkawire.open_capture({str(TRANSACTIONS)!r}).summary()._repr_html_(); "
        "print([name for name in ('pandas', 'polars', 'duckdb') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_notebook_of_the_guide_shows_what_it_does() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tests.notebook.running", str(NOTEBOOK), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    fresh = json.loads(found.stdout)
    assert plain_outputs(fresh) == plain_outputs(json.loads(NOTEBOOK.read_text()))


def plain_outputs(notebook: dict[str, Any]) -> list[str]:
    return [
        "".join(output["data"]["text/plain"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
    ]


def test_findings() -> None:
    capture = kafkawire.open_capture(CAPTURES / "kp22-old-0.9.pcap")
    findings = capture.diagnose()
    assert {one["rule"] for one in findings} == {"old-versions", "unsupported-versions"}
    assert len(findings) == len(list(findings))
    assert findings[0]["severity"] == "warning"
    assert "old-versions" in repr(findings)
    assert "<td>warning</td>" in findings._repr_html_()
    assert len(capture.diagnose(disable=["old-versions", "unsupported-versions"])) == 0
    fewer = capture.diagnose(thresholds={"unsupported-versions.errors": 2})
    assert {one["rule"] for one in fewer} == {"old-versions"}
    with pytest.raises(KafkaWireError, match="unknown rule"):
        capture.diagnose(disable=["no-such-rule"])
