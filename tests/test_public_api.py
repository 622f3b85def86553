"""What docs/stability.md lists as public is what packages export, and all that examples import.

`python -m tests.test_public_api` prints the table of the page anew.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from typing import Final

import pytest

from tests.conftest import ROOT
from tests.pages import blocks

EXPORTS: Final = (
    "kafkawire",
    "kafkawire.capture",
    "kafkawire.capture.filters",
    "kafkawire.capture.tables",
    "kafkawire.notebook",
    "kafkawire.records",
    "kafkawire.log",
    "kafkawire.broker",
    "kafkawire.client.consumer",
    "kafkawire.client.producer",
    "kafkawire.client.share_consumer",
    "kafkawire.blocking",
    "kafkawire.net.admin",
    "kafkawire.reports.diagnosis",
    "kafkawire.spark",
    "kafkawire.values",
    "kafkawire_codegen",
)
"""Packages of which everything in `__all__` is public."""
NAMED: Final = {
    "kafkawire.capture.tables.bodies": ["schema", "typed"],
    "kafkawire.client.config": ["CLIENT_KEYS"],
    "kafkawire.client.metrics": ["MetricName"],
    "kafkawire.client.security": ["OAuthBearerToken", "TokenProvider"],
    "kafkawire.client.serialization": ["Deserializer", "Serializer"],
    "kafkawire.net.consumer": ["Consumer"],
    "kafkawire.net.fixture": ["ClusterFixture"],
    "kafkawire.net.interceptors": ["OnAcknowledgement", "OnCommit", "OnConsume", "OnSend"],
    "kafkawire.net.nodes.cluster_thread": ["ClusterThread"],
    "kafkawire.net.producer": ["Producer", "RecordMetadata"],
    "kafkawire.net.share_consumer": ["ShareConsumer"],
    "kafkawire.net.schema_registry": ["RegistryAddress", "RegistryHttp"],
    "kafkawire.net.server": ["Server", "ServerConfig"],
    "kafkawire.net.server_thread": ["ServerThread"],
    "kafkawire.net.topic": ["Topic"],
    "kafkawire.node.composition": ["InMemory"],
    "kafkawire.node.local_cluster": [
        "Isolated",
        "Killed",
        "LocalCluster",
        "NodeEffect",
        "NodeStarted",
        "ShutDown",
    ],
    "kafkawire.spark.options": ["parse"],
    "kafkawire.spark.watch": ["Watcher"],
    "kafkawire_codegen.compile": ["compile_modules"],
    "kafkawire_codegen.releases": ["read"],
    "kafkawire_codegen.schema": ["RELEASES"],
    "kafkawire_codegen.targets": ["GeneratedFiles", "generate_target"],
    "kafkawire_codegen.user_templates": ["TemplateErrors", "TemplateFault"],
}
"""Modules of which only these names are public."""
MESSAGES: Final = "kafkawire.messages"


def public() -> dict[str, list[str]]:
    """Module -> its public names."""
    return {name: sorted(import_module(name).__all__) for name in EXPORTS} | NAMED


def table() -> str:
    """The rows of docs/stability.md."""
    return "".join(
        f"| `{module}` | {', '.join(f'`{name}`' for name in names)} |\n"
        for module, names in public().items()
    )


def test_the_page_lists_what_is_exported() -> None:
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    listed = "".join(re.findall(r"^\| `kafkawire[\w.]*` \|.*\n", page, re.MULTILINE))
    assert listed == table(), "python -m tests.test_public_api"


@pytest.mark.parametrize("module", [*EXPORTS, *NAMED])
def test_public_names_are_importable_and_not_private(module: str) -> None:
    imported = import_module(module)
    names = public()[module]
    assert len(names) == len(set(names))
    for name in names:
        assert not name.startswith("_")
        assert hasattr(imported, name), name


@pytest.mark.parametrize("module", EXPORTS)
def test_exports_come_from_kafkawire(module: str) -> None:
    """None is a name of another package that happens to be imported."""
    imported = import_module(module)
    for name in public()[module]:
        home = getattr(getattr(imported, name), "__module__", None) or "kafkawire"
        assert home.partition(".")[0] in ("builtins", "kafkawire", "kafkawire_codegen", "types"), (
            name
        )


OPAQUE: Final = {"kafkawire.KafkaWireError"}
"""Exceptions that take what `Exception` takes, of which Python 3.11 knows no signature."""


@pytest.mark.parametrize("module", [*EXPORTS, *NAMED])
def test_help_explains_public_names(module: str) -> None:
    """Compiled or not: a docstring and arguments, also of methods."""
    imported = import_module(module)
    for name in public()[module]:
        value = getattr(imported, name)
        if not isinstance(value, type) and not inspect.isroutine(value):
            continue
        assert inspect.getdoc(value), name
        if f"{module}.{name}" not in OPAQUE:
            inspect.signature(value)
        if isinstance(value, type):
            methods = [key for key in vars(value) if not key.startswith("_")]
            for method in methods:
                if inspect.isroutine(getattr(value, method)):
                    inspect.signature(getattr(value, method))


def test_the_reference_describes_the_public_packages() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    described = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    assert sorted(described) == sorted(public().keys() - {"kafkawire_codegen.schema"})


INTERNALS: Final = "docs/internals/"
"""Its examples may import what any package exports."""


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(block.page, block.text, id=block.name)
        for language in ("py", "python")
        for block in blocks(language=language)
    ],
)
def test_examples_import_public_names_only(page: str, code: str) -> None:
    known = public()
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("kafkawire"):
            continue
        module = str(node.module)
        if module.startswith(MESSAGES):  # generated from schemas
            continue
        if page.startswith(INTERNALS):
            known = {**known, module: getattr(import_module(module), "__all__", [])}
        for each in node.names:
            assert each.name in known.get(module, []) or f"{module}.{each.name}" in known, each.name


if __name__ == "__main__":
    print(table(), end="")
