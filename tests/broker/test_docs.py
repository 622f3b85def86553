"""The tables and diagrams of the page are those of the code."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkawire import REGISTRY, ApiKey
from kafkawire.broker.apis import (
    APIS,
    BETWEEN_BROKERS,
    Handled,
    Listener,
    served_on,
)
from kafkawire.broker.bounds import Bounds
from kafkawire.broker.groups.classic_groups.states import ADMISSION, LEGAL, GroupState, Kind
from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.broker.security.server import LEGAL as AUTHENTICATION
from kafkawire.broker.security.server import State

from ..conftest import ROOT

HANDLED = {
    Handled.BROKER: "any broker",
    Handled.CONTROLLER: "controller",
    Handled.QUORUM: "leader of the quorum",
    Handled.REPLICAS: "replicas",
    Handled.GROUP_COORDINATOR: "group coordinator",
    Handled.SHARE_COORDINATOR: "share coordinator",
    Handled.TRANSACTION_COORDINATOR: "transaction coordinator",
}
PAGE = (ROOT / "docs" / "broker.md").read_text(encoding="utf-8")


def named(state: GroupState | State) -> str:
    return state.value if isinstance(state, GroupState) else state.value.title().replace(" ", "")


@pytest.mark.parametrize("legal", [LEGAL, AUTHENTICATION], ids=["groups", "authentication"])
def test_where_a_state_may_go_is_drawn(
    legal: Mapping[GroupState | State, frozenset[GroupState | State]],
) -> None:
    rows = sorted(
        f"    {named(here)} --> {named(there)}" for here in legal for there in legal[here]
    )
    assert "\n".join(["```mermaid", "stateDiagram-v2", *rows, "```"]) in PAGE


def test_what_a_member_meets() -> None:
    for kind in Kind:
        responses = [ADMISSION[state][kind] for state in GroupState]
        row = " | ".join(error.name if error else "-" for error in responses)
        assert f"| {kind.value} | {row} |\n" in PAGE


@pytest.mark.parametrize("bound", Bounds._fields)
def test_every_bound_is_described(bound: str) -> None:
    value = Bounds._field_defaults[bound]
    [row] = [line for line in PAGE.splitlines() if f"(`{bound}`)" in line]
    shown = {1 << 28: "256 MiB", 1 << 30: "1 GiB"}.get(value, f"{value:,}")
    assert shown in row


def _title(name: AclResource | Operation) -> str:
    return name.name.title().replace("_", "")


def api_row(key: ApiKey) -> str:
    """Return the row of an API: where it is handled, what is authorized, who serves it."""
    info = REGISTRY.request(key)
    assert info is not None
    api = APIS[key]
    permissions = [f"{_title(each.operation)} {_title(each.resource)}" for each in api.permissions]
    served = [
        name
        for name, keys in (
            ("brokers", served_on(Listener.BROKER)),
            ("controllers", served_on(Listener.CONTROLLER)),
            ("brokers with ZooKeeper", BETWEEN_BROKERS),
        )
        if key in keys
    ]
    name = info.name.removesuffix("Request")
    cells = (name, HANDLED[api.handled], ", ".join(permissions) or "-", ", ".join(served))
    return f"| {' | '.join(cells)} |"


def test_the_apis_are_listed() -> None:
    table = PAGE.partition("\n## APIs\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert rows[2:] == [api_row(key) for key in APIS]
