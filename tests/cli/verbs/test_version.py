"""`kafkawire version`: what a bug report needs, and no secret."""

from __future__ import annotations

import platform

import pytest

import kafkawire
from tests.cli.reports import run


def test_a_report_describes_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAWIRE_SASL_PASSWORD", "secret")
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    shown = run("version", "--report").stdout
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert facts["kafkawire"] == kafkawire.__version__
    assert platform.machine() in facts["platform"]
    assert facts["PYTHONUNBUFFERED"] == "1"
    assert facts["KAFKAWIRE_SASL_PASSWORD"] == "(set)"
    assert facts["numpy"][0].isdigit()
    assert {"pyarrow", "duckdb", "plotly"} <= facts.keys()
    assert "secret" not in shown


def test_without_it_only_versions_are_shown() -> None:
    lines = run("version").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["kafkawire", "python", "codecs"]
