"""`kafkawire diagnose`: its options, its text, and rules of other packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.reports import run
from tests.conftest import FIXTURES
from tests.reports.diagnosis.stories import Story

OLD = FIXTURES / "captures" / "kp22-old-0.9.pcap"
"""Has warnings, and nothing critical."""
NO_VERSIONS = ("--disable", "old-versions", "--disable", "unsupported-versions")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 0),
        (("--fail-on", "critical"), 0),
        (("--fail-on", "warning"), 1),
        (("--fail-on", "notice"), 1),
        (("--fail-on", "warning", "--disable", "old-versions"), 1),
        (("--fail-on", "warning", *NO_VERSIONS), 0),
        (("--fail-on", "critical", "--set", "unsupported-versions.errors=1"), 0),
    ],
)
def test_the_exit_code_depends_on_the_findings(options: tuple[str, ...], code: int) -> None:
    assert run("diagnose", OLD, *options).exit_code == code


def test_the_most_harmful_finding_is_first(tmp_path: Path) -> None:
    story = Story()
    for _ in range(3):
        story.produce(code=46)  # DUPLICATE_SEQUENCE_NUMBER
        story.produce(code=19, topic="payments")  # NOT_ENOUGH_REPLICAS
        story.fetch(code=1)  # OFFSET_OUT_OF_RANGE
    result = run("diagnose", story.save(tmp_path / "a.pcap"), "--format", "json")
    report = json.loads(result.stdout)
    assert [one["severity"] for one in report["findings"]] == ["critical", "warning", "notice"]
    assert report["counts"] == {"critical": 1, "warning": 1, "notice": 1}
    assert report["left_out"] == 0
    first = run("diagnose", tmp_path / "a.pcap", "--format", "json", "--top", "1")
    bounded = json.loads(first.stdout)
    assert bounded["findings"] == report["findings"][:1]
    assert (bounded["left_out"], bounded["counts"]) == (2, report["counts"])


def test_findings_are_shown_with_evidence(tmp_path: Path) -> None:
    path = Story().produce(code=19, topic="payments").save(tmp_path / "a.pcap")
    shown = run("diagnose", path).stdout
    assert "CRITICAL too-few-in-sync-replicas: client tester, topic payments" in shown
    assert "error == NOT_ENOUGH_REPLICAS" in shown


def test_what_was_read_is_said(tmp_path: Path) -> None:
    """No findings of nothing are not those of a healthy cluster."""
    capture = FIXTURES / "captures" / "kcat-kf.pcap"
    everything, nobody = ("--json",), ("--json", "--filter", "client == 'nobody'")
    counts = [json.loads(run("diagnose", capture, *each).stdout) for each in (everything, nobody)]
    assert [(one["requests"] > 0, one["packets"]) for one in counts] == [(True, 203), (False, 203)]
    assert "match the filter" in run("diagnose", capture, *nobody[1:]).stdout
    (tmp_path / "empty.pcap").write_bytes(capture.read_bytes()[:24])
    assert "no Kafka requests" in run("diagnose", tmp_path / "empty.pcap").stdout


def test_untrusted_names_are_escaped(tmp_path: Path) -> None:
    path = Story().produce(code=19, topic="a\x1b[2Jb", client_id="c\n'").save(tmp_path / "a.pcap")
    shown = run("diagnose", path).stdout
    assert "\x1b" not in shown
    assert "a\\x1b[2Jb" in shown


def test_rules_are_listed_without_captures() -> None:
    listed = json.loads(run("diagnose", "--list", "--format", "json").stdout)["rules"]
    assert {"tiny-batches", "rebalance-storm"} <= {rule["rule"] for rule in listed}
    assert all(rule["description"] for rule in listed)
    assert "tiny-batches" in run("diagnose", "--list").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "FILE...: expected captures, - for stdin, or --list"),
        ((OLD, "--disable", "tiny-batch"), "did you mean tiny-batches?"),
        ((OLD, "--disable", "tiny-batch"), "for --disable: unknown rule"),
        ((OLD, "--set", "tiny-batches.byte=1"), "for --set: the rule tiny-batches has no"),
        ((OLD, "--set", "tiny-batches.byte=3"), "did you mean bytes?"),
        ((OLD, "--set", "tiny-batches.bytes=few"), "must be a number"),
        ((OLD, "--set", "tiny-batches.bytes"), "expected RULE.THRESHOLD=VALUE"),
    ],
)
def test_options_that_are_wrong(options: tuple[object, ...], message: str) -> None:
    result = run("diagnose", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("verb", ["diagnose", "report"])
def test_a_rule_that_does_not_exist_is_refused_by_every_verb(verb: str, tmp_path: Path) -> None:
    page = ("-o", tmp_path / "page.html") if verb == "report" else ()
    result = run(verb, OLD, *page, "--disable", "tiny-batch")
    assert result.exit_code == 2
    assert "did you mean tiny-batches?" in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


PACKAGE = """
from kafkawire import ApiKey
from kafkawire.reports.diagnosis import (
    By, Confidence, ErrorRule, Finding, Occurrences, Rule, Severity, Subjects, Threshold, client_of,
)

class ProducesAtAll(Rule):
    name = "{name}"
    description = "A client produces."
    apis = frozenset({{ApiKey.PRODUCE}})
    thresholds = (Threshold("requests", 1, "requests", "one is enough"),)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._clients = Subjects(Occurrences)

    def exchange(self, exchange, _):
        self._clients.of(client_of(exchange)).add(exchange.main_row)

    def findings(self):
        for subject, seen in self._clients:
            if seen.count >= self.limits["requests"]:
                yield Finding(
                    self.name, Severity.CRITICAL, subject, "produces", seen,
                    "It can.", "Stop it.", Confidence.HIGH,
                )

class WithoutFindings(Rule):
    name = "without-findings"
    description = "Incomplete."

CORRUPT = ErrorRule(
    name="{name}", description="Corrupt records.", error_codes=frozenset({{2}}), by=By.TOPIC,
    thresholds=(Threshold("errors", 2, "errors", "one may be a test"),), cause="?", advice="?",
    severity=Severity.CRITICAL,
)

NOT_A_RULE = 7
"""


def install(folder: Path, package: str, attribute: str, name: str) -> None:
    """Write a package with an entry point, as pip would install it."""
    (folder / f"{package}.py").write_text(PACKAGE.format(name=name), "utf-8")
    info = folder / f"{package}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[kafkawire.diagnosis]\nmine = {package}:{attribute}\n", "utf-8"
    )


def test_a_rule_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rules_of_mine", "ProducesAtAll", "produces-at-all")
    monkeypatch.syspath_prepend(tmp_path)
    path = Story().produce().save(tmp_path / "a.pcap")
    (finding,) = json.loads(run("diagnose", path, "--format", "json").stdout)["findings"]
    assert (finding["rule"], finding["subject"]) == ("produces-at-all", {"client": "tester"})
    result = run("diagnose", path, "--format", "json", "--set", "produces-at-all.requests=2")
    assert json.loads(result.stdout)["findings"] == []


def test_a_row_of_error_codes_of_another_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "rows_of_mine", "CORRUPT", "corrupt")
    monkeypatch.syspath_prepend(tmp_path)
    options = "--format", "json", "--disable", "broker-errors"
    path = Story().produce(code=2).produce(code=2).save(tmp_path / "a.pcap")
    (finding,) = json.loads(run("diagnose", path, *options).stdout)["findings"]
    assert (finding["rule"], finding["severity"], finding["count"]) == ("corrupt", "critical", 2)
    assert finding["subject"] == {"client": "tester", "topic": "orders"}
    result = run("diagnose", path, *options, "--set", "corrupt.errors=3")
    assert json.loads(result.stdout)["findings"] == []


@pytest.mark.parametrize(
    ("package", "attribute", "name", "message"),
    [
        ("rules_that_clash", "ProducesAtAll", "tiny-batches", "two rules are named"),
        ("rules_that_are_none", "NOT_A_RULE", "none", "not a subclass of Rule"),
        ("rules_without_findings", "WithoutFindings", "none", "no method `findings`"),
    ],
)
def test_a_rule_that_cannot_be_used(
    package: str,
    attribute: str,
    name: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(tmp_path, package, attribute, name)
    monkeypatch.syspath_prepend(tmp_path)
    result = run("diagnose", OLD)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("verb", "options"), [("diagnose", ()), ("readiness", ("--target", "4.0"))]
)
def test_releases_are_read_without_the_rules_of_schemas(
    verb: str, options: tuple[str, ...]
) -> None:
    code = "import sys; sys.modules['kafkawire_codegen.rules'] = None\n"
    code += "from kafkawire_cli.main import main\nmain()"
    process = subprocess.run(
        [sys.executable, "-c", code, verb, str(OLD), *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.stderr, process.stdout) == ("", run(verb, OLD, *options).stdout)
