"""The mutants of all simulations of clusters are those of the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from tests.broker.replication.session_model import MUTANTS as FETCH_SESSIONS
from tests.controller.mutants import MUTANTS as CONTROLLER
from tests.node.groups.mutants import MUTANTS as GROUPS
from tests.node.mutants import MUTANTS as NODE
from tests.node.pipelines.ending_mutants import MUTANTS as ENDINGS
from tests.node.pipelines.mutants import MUTANTS as PIPELINES
from tests.node.pipelines.participant_mutants import MUTANTS as PARTICIPANTS
from tests.node.pipelines.transaction_mutants import MUTANTS as TRANSACTIONS
from tests.node.zookeeper.mutants import MUTANTS as ZOOKEEPER
from tests.raft.mutants import MUTANTS as RAFT
from tests.replication.mutants import MUTANTS as REPLICATION
from tests.storage.test_simulation import MUTANTS as STORAGE
from tests.storage.test_simulation import MUTANTS_OF_MOVES as MOVES

from .conftest import ROOT

PACKAGES: Final[Mapping[str, Iterable[str]]] = {
    "storage": [*STORAGE, *MOVES],
    "raft": RAFT,
    "controller": CONTROLLER,
    "replication": REPLICATION,
    "node": NODE,
    "groups": GROUPS,
    "pipelines": PIPELINES,
    "transactions": TRANSACTIONS,
    "participants": PARTICIPANTS,
    "ends of transactions": ENDINGS,
    "zookeeper": ZOOKEEPER,
    "fetch sessions": FETCH_SESSIONS,
}
"""Package -> the rules that its simulation has to find missing."""
FEWEST: Final = 25


def rows() -> list[str]:
    """Make the rows of the table."""
    names = {
        package: [each.replace("_", " ") for each in mutants]
        for package, mutants in PACKAGES.items()
    }
    return [f"| {package} | {len(each)} | {'; '.join(each)} |" for package, each in names.items()]


def test_the_page_lists_all_mutants() -> None:
    page = (ROOT / "docs" / "internals" / "cluster.md").read_text(encoding="utf-8")
    table = "\n".join(rows())
    assert table in page, table
    total = sum(len(list(each)) for each in PACKAGES.values())
    [counted] = re.findall(r"(\d+) rules are removed", page)
    assert int(counted) == total >= FEWEST
