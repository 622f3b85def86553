"""The layout of the tree: imports go one way, and a packet passes few files."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

from tests import layout
from tests.conftest import missing

FEWER_FILES: Final = 43
"""More files than a packet may pass on its way to a printed row: tunnels, proxies and copies are
stations of their own.
"""

PASSED: Final = """
import json, sys
from tests import layout
sys.meta_path.insert(0, layout.Sources)
print(json.dumps({form: layout.passed(form) for form in layout.FORMATS}))
"""


TOP_LEVEL: Final = frozenset(
    {
        ".ci", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
        "Makefile", "README.md", "SECURITY.md", "benchmarks", "cli", "codegen", "docs", "fixtures",
        "kafkawire", "pyproject.toml", "schemas", "tests",
    }
)  # fmt: skip


def test_the_top_level_has_only_what_belongs_there() -> None:
    if not (layout.ROOT / ".git").exists():
        missing("a checkout with its commits")
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=layout.ROOT, capture_output=True, text=True, check=True)
    tracked = {path.partition("/")[0] for path in listed.stdout.split("\0")} - {""}
    assert tracked == TOP_LEVEL


def test_imports_have_no_circles() -> None:
    assert layout.circles(late=False) == []


def test_the_architecture_names_every_folder() -> None:
    page = (layout.ROOT / "ARCHITECTURE.md").read_text("utf-8")
    missing = [each for each in layout.folders() if f"{each.rpartition('/')[2]}/" not in page]
    assert missing == []


def test_a_packet_passes_few_files_on_its_way_to_a_row() -> None:
    command = [sys.executable, "-c", PASSED]
    ran = subprocess.run(
        command, cwd=layout.ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    found: dict[str, list[str]] = json.loads(ran.stdout)
    assert found.keys() == set(layout.FORMATS)
    for form, files in found.items():
        assert {"kafkawire/capture/engine.py", "kafkawire/primitives/reader.py"} <= set(files)
        assert len(files) < FEWER_FILES, (form, files)
