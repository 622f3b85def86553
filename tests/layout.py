"""Measures the layout of the tree: `python -m tests.layout` prints it as Markdown, and with
`--write` puts it into ARCHITECTURE.md and docs/internals/layout.md.

It counts Python modules per folder, circles of imports, lines, public methods of the machines of a
capture, and the hand-written files whose functions are called for packets on their way to printed
rows. `-v` lists circles, methods and files.
"""

from __future__ import annotations

import ast
import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
TOPS: Final = {
    "kafkawire": ROOT,
    "kafkawire_cli": ROOT / "cli",
    "kafkawire_codegen": ROOT / "codegen",
}
GENERATED: Final = "kafkawire/messages"
CAPTURES: Final = [ROOT / "fixtures" / "captures" / "kcat-kf.pcap"]
FORMATS: Final = ("table", "jsonl")
BEFORE: Final = (
    "456", "62,293", "48", "10", "0", "6 (of 12, 2, 6, 2, 2, 2 modules)", "15", "41", "43", "46",
)  # fmt: skip
"""The same at commit 4c3ff06 of November 2026, before folders were divided by station."""
MACHINES: Final = ("Engine", "Conversation", "Reassembler")
"""The classes of kafkawire.capture that a stream of packets enters."""


def modules() -> dict[str, Path]:
    """Name -> file of every hand-written module of the packages."""
    found = {}
    for package, top in TOPS.items():
        for path in sorted((top / package).rglob("*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            if not path.relative_to(top).as_posix().startswith(f"{GENERATED}/"):
                found[".".join(parts).removesuffix(".__init__")] = path
    return found


def folders() -> Counter[str]:
    """Count the modules of each folder, `__init__.py` included."""
    return Counter(str(path.parent.relative_to(ROOT)) for path in modules().values())


def lines() -> int:
    """Count the lines of all hand-written modules."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in modules().values())


def imports(name: str, path: Path, known: set[str], *, late: bool) -> set[str]:
    """List the modules of these packages that a module imports: when it is imported itself, or,
    with `late`, also inside functions and for type checking.
    """
    found: set[str] = set()
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _nodes(ast.parse(path.read_text("utf-8")), late=late):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            start = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            for each in node.names:
                full = f"{base}.{each.name}"
                found.add(full if full in known else base)
    return (found & known) - {name}


def _nodes(tree: ast.AST, *, late: bool) -> Iterator[ast.AST]:
    """Walk what is executed when a module is imported, or everything."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        if late:
            todo += ast.iter_child_nodes(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo += ast.iter_child_nodes(node)


def circles(*, late: bool) -> list[list[str]]:
    """List the sets of modules that import each other, directly or by way of others."""
    found = modules()
    graph = {name: imports(name, path, set(found), late=late) for name, path in found.items()}
    reach = {name: _reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in reach[name] if name in reach[other]))
        for name in graph
        if name in reach[name]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = [start]
    while todo:
        for name in graph[todo.pop()] - seen:
            seen.add(name)
            todo.append(name)
    return seen


def entry_points() -> list[str]:
    """List the public methods of MACHINES, without properties."""
    found = []
    for path in sorted((ROOT / "kafkawire" / "capture").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name in MACHINES:
                found += [
                    f"{node.name}.{each.name}"
                    for each in node.body
                    if isinstance(each, ast.FunctionDef)
                    and not each.name.startswith("_")
                    and not each.decorator_list
                ]
    return found


class Sources:
    """Finds modules of the packages by their sources alone: put first into `sys.meta_path`.

    A profile does not see calls inside native modules.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        """Find a module of the packages; None for those of others."""
        top = TOPS.get(name.partition(".")[0])
        for folder in [] if top is None else path or [str(top)]:
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
            if spec is not None:
                return spec
        return None


def passed(form: str) -> list[str]:
    """List the hand-written files of which `kafkawire decode` calls a function, from the first
    read of the capture to the last row. The packages must have been imported by `Sources`.
    """
    from kafkawire_cli.main import app

    arguments = ["decode", "--format", form, *map(str, CAPTURES)]
    called: set[str] = set()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            file = frame.f_code.co_filename
            if called or file.endswith("capture/files/source.py"):
                called.add(file)

    for profiled in (None, profile):  # the first time for what is imported and computed once
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            sys.setprofile(profiled)
            with contextlib.suppress(SystemExit):
                app(arguments)
            sys.setprofile(None)
    known = set(map(str, modules().values()))
    return sorted(str(Path(file).relative_to(ROOT)) for file in called & known)


def summary() -> Iterator[str]:
    """Yield a table of all measurements, beside those of BEFORE."""
    files = [set(passed(form)) for form in FORMATS]
    now = {
        "modules": f"{len(modules())}",
        "lines": f"{lines():,}",
        "modules in the largest folder": f"{max(folders().values())}",
        "folders of more than 20 modules": f"{sum(each > 20 for each in folders().values())}",
        "circles of imports": _sizes(circles(late=False)),
        "with imports inside functions and for type checking": _sizes(circles(late=True)),
        "public methods of the engine, the conversation, the reassembler": f"{len(entry_points())}",
        "hand-written files from packet to row, as a table": f"{len(files[0])}",
        "as JSON lines": f"{len(files[1])}",
        "both formats together, which no packet passes in one run": f"{len(set.union(*files))}",
    }
    yield "| | before | now |"
    yield "| --- | --- | --- |"
    for (what, value), before in zip(now.items(), BEFORE, strict=True):
        yield f"| {what} | {before} | {value} |"


def _sizes(groups: list[list[str]]) -> str:
    sizes = ", ".join(str(len(group)) for group in groups)
    return f"{len(groups)} (of {sizes} modules)" if groups else "0"


def by_folder() -> Iterator[str]:
    """Yield a table of the modules in each folder."""
    yield "| folder | modules |"
    yield "| --- | --- |"
    for folder, count in sorted(folders().items()):
        yield f"| `{folder}/` | {count} |"


def write(page: Path, table: Iterator[str]) -> None:
    """Replace the table between the markers of a page."""
    start, end = (f"<!-- {word} of python -m tests.layout -->" for word in ("begin", "end"))
    before, _, rest = page.read_text("utf-8").partition(f"{start}\n")
    after = rest.partition(end)[2]
    text = "\n".join(table)
    page.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Print or write the tables."""
    sys.meta_path.insert(0, Sources)
    if "--write" in sys.argv:
        write(ROOT / "ARCHITECTURE.md", summary())
        write(ROOT / "docs" / "internals" / "layout.md", by_folder())
        return
    for table in (summary(), by_folder()):
        print(*table, "", sep="\n")
    if "-v" in sys.argv:
        for group in circles(late=True):
            print("circle:", *group)
        print("entry points:", *entry_points())
        print("files:", *sorted({file for form in FORMATS for file in passed(form)}))


if __name__ == "__main__":
    main()
