"""`kafkawire features`, and the call of the admin client below it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkawire.blocking import Admin
from kafkawire.client.failures import BrokerError
from kafkawire.configs.features import METADATA_VERSIONS, NEWEST_METADATA, OLDEST_METADATA
from kafkawire.errors import InvalidValue, OutOfRange
from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.cli.reports import run
from tests.real.broker import Broker

METADATA = "metadata.version"
SHARE = "share.version"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread() as server:
        yield server


@pytest.fixture
def admin(server: ServerThread) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": server.bootstrap}) as admin:
        before = levels(admin)
        yield admin
        for name, level in before.items():
            after = levels(admin)[name]
            if after != level:
                admin.update_features({name: level}, "UPGRADE" if level > after else DOWN)


DOWN: Any = "UNSAFE_DOWNGRADE"


@pytest.fixture
def here(server: ServerThread) -> tuple[str, str]:
    return ("-b", server.bootstrap)


def levels(admin: Admin) -> dict[str, int]:
    return {feature.name: feature.level for feature in admin.broker_versions(1).features}


def features(*words: str) -> Any:
    done = run("features", *words, "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_features_are_lowered_and_raised(admin: Admin) -> None:
    level = levels(admin)[SHARE]
    admin.update_features({SHARE: 0}, "SAFE_DOWNGRADE", validate_only=True)
    assert levels(admin)[SHARE] == level > 0
    admin.update_features({SHARE: 0}, "SAFE_DOWNGRADE")
    assert levels(admin)[SHARE] == 0
    admin.update_features({SHARE: level})
    assert levels(admin)[SHARE] == level
    with pytest.raises(BrokerError, match=SHARE):
        admin.update_features({SHARE: 0})  # is not an upgrade
    with pytest.raises(BrokerError, match=SHARE):
        admin.update_features({SHARE: 77})


@pytest.mark.parametrize(
    ("change", "level", "error"),
    [("SIDEGRADE", 1, InvalidValue), ("UPGRADE", -1, OutOfRange), ("UPGRADE", "1", InvalidValue)],
)
def test_an_invalid_change_is_not_sent(
    admin: Admin, change: Any, level: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.update_features({SHARE: level}, change)


def test_features_are_shown_and_changed_by_the_verb(admin: Admin, here: tuple[str, str]) -> None:
    level = levels(admin)[SHARE]
    shown = {one["name"]: one for one in features(*here)["features"]}
    assert {name: one["level"] for name, one in shown.items()} == levels(admin)
    assert shown[METADATA]["lowest"] == OLDEST_METADATA
    assert METADATA_VERSIONS[levels(admin)[METADATA]] in run("features", *here).stdout
    lowered = (*here, "--downgrade", f"{SHARE}=0")
    planned = features(*lowered, "--dry-run")
    assert planned["dry_run"] is True
    assert levels(admin)[SHARE] == level
    done = run("features", *lowered, "--yes")
    assert done.stdout == f"downgraded feature {SHARE} from {level} to 0\n"
    assert levels(admin)[SHARE] == 0
    [change] = features(*here, "--upgrade", f"{SHARE}={level}")["changes"]
    assert change["feature"] == {"name": SHARE, "level": level, "previous_level": 0}
    assert levels(admin)[SHARE] == level


def test_a_metadata_version_is_named_by_its_release() -> None:
    with ServerThread(ServerConfig(release="4.0")) as server:
        here = ("-b", server.bootstrap)
        with Admin({"bootstrap.servers": server.bootstrap}) as admin:
            level = levels(admin)[METADATA]
        older = METADATA_VERSIONS[level - 1]
        planned = features(*here, "--downgrade", f"{METADATA}={older}", "--unsafe", "--dry-run")
    [change] = planned["changes"]
    assert change["feature"] == {"name": METADATA, "level": level - 1, "previous_level": level}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--upgrade", "a=1", "--downgrade", "b=0"), "not allowed together"),
        (("--upgrade", "a=1", "--unsafe"), "only allowed with --downgrade"),
        (("--upgrade", "a"), "NAME=LEVEL"),
        (("--upgrade", "a=one"), "NAME=LEVEL"),
        (("--upgrade", "a=40000"), "NAME=LEVEL"),
        (("--upgrade", f"{METADATA}=4.0-IV"), "4.0-IV"),
        (("--downgrade", "a=0"), "no terminal to confirm"),
        (("--dry-run",), "nothing to change"),
        (("--upgrade", "a=1", "--yes"), "--yes"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(words: tuple[str, ...], reason: str) -> None:
    done = run("features", *words)
    assert done.exit_code == 2
    assert reason in " ".join(done.stderr.split())


def test_what_the_cluster_refuses_is_named(admin: Admin, here: tuple[str, str]) -> None:
    for words, reason in (
        (("--upgrade", "share.versio=1"), "did you mean share.version"),
        (("--upgrade", "\x1b[31mred=1"), "red"),
        (("--upgrade", f"{METADATA}={NEWEST_METADATA + 50}"), METADATA),
        (("--upgrade", f"{SHARE}=0"), SHARE),
    ):
        done = run("features", *here, *words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert reason in done.stderr
        assert "\x1b" not in done.stderr
    assert levels(admin)[SHARE] > 0


def test_beside_a_real_kafka(kafka: Broker) -> None:
    here = ("-b", kafka.bootstrap)
    shown = {one["name"]: one for one in features(*here)["features"]}
    share = shown[SHARE]
    planned = features(*here, "--downgrade", f"{SHARE}=0", "--dry-run")
    assert planned["changes"][0]["feature"]["previous_level"] == share["level"]
    refused = run("features", *here, "--upgrade", f"{SHARE}={share['highest'] + 1}")
    assert (refused.exit_code, SHARE in refused.stderr) == (1, True)
    assert features(*here)["features"] == list(shown.values())
