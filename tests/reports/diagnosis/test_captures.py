"""Diagnoses the shipped captures: healthy traffic has no critical finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkawire.capture import decode_capture
from kafkawire.capture.filters import parse
from kafkawire.reports.diagnosis.documentation import markdown
from tests.cli.reports import report
from tests.conftest import ROOT

from .false_alarms import FOLDERS, OTHERS, captures, line, others
from .stories import NOT_MESSAGES

CAPTURES = sorted(path for row in FOLDERS for path in captures(row))
ON_PURPOSE = ("fg-sweep", "kafkago-kf", "kp22-old", "kcat-kf--snap200")
"""Captures of old clients, of requests that are wrong, and with packets cut off."""


def findings(path: Path) -> list[Any]:
    reported: list[Any] = report("diagnose", path)["findings"]
    return reported


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_healthy_captures_have_no_false_alarms(path: Path) -> None:
    severities = {one["severity"] for one in findings(path)}
    assert "critical" not in severities
    if not path.name.startswith(ON_PURPOSE):
        assert severities <= {"notice"}


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_filters_of_findings_select_messages(path: Path) -> None:
    for one in findings(path):
        if one["filter"] and one["rule"] not in NOT_MESSAGES:
            assert any(True for _ in decode_capture(path, where=parse(one["filter"]))), one


def test_the_page_counts_findings() -> None:
    page = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8").splitlines()
    for row in FOLDERS:
        assert line(row, captures(row)) in page


@pytest.mark.third_party
def test_the_page_counts_findings_in_captures_of_others() -> None:
    page = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8").splitlines()
    assert line(OTHERS, others()) in page


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert page == markdown(), (
        "python -m kafkawire.reports.diagnosis.documentation > docs/diagnose.md"
    )
