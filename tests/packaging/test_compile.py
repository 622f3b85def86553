"""`compile_modules`: for our own wheel, and for whoever generates a package and wants it native."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafkawire_codegen import compile as compiling
from kafkawire_codegen.compile import CFunction, NotCompiled, compile_modules, native_files

SUM = """
from typing import Final

ZERO: Final = ()

class Terms:
    'Numbers to add.'

    def __init__(self, first: int, *more: int, rest: tuple[int, ...] = ZERO) -> None:
        self.all = (first, *more, *rest)

    @classmethod
    def of(cls, text: str, separator: str = str()) -> 'Terms':
        'Read numbers.'
        return cls(*[int(each) for each in text.split(separator)])

    @staticmethod
    def none(*, rest: object = object()) -> 'Terms':
        return Terms(0)

def add(left: int, right: int) -> int:
    'Add two numbers; "quoted" \\\\ é.'
    return left + right
"""

ANSWER = """
#include <Python.h>
static PyObject *answer(PyObject *module, PyObject *none) { return PyLong_FromLong(42); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "answers", .m_methods = methods};
PyMODINIT_FUNC PyInit_answers(void) { return PyModuleDef_Init(&module); }
"""

NAMED = """
#include <Python.h>
static inline PyObject *Named(PyObject *data, int64_t size)
{ return PyUnicode_FromStringAndSize(PyBytes_AS_STRING(data), size); }
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    (tmp_path / "mine" / "sums.py").write_text(SUM)
    (tmp_path / "mine" / "more.py").write_text("from .sums import add\nthree = add(1, 2)\n")
    return tmp_path


def run_in(folder: Path, code: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def test_modules_share_one_library_and_know_their_files(project: Path) -> None:
    modules = ["mine/sums.py", "mine/more.py"]
    made = compile_modules(project, modules, library="mine", out=project)
    assert [file.partition(".")[0] for file in made] == ["mine/more", "mine/sums", "mine__mypyc"]
    assert native_files(project, "mine", "mine") == [project / file for file in made]
    code = "from mine import more, sums; print(more.three, more.__file__, sums.__file__)"
    assert run_in(project, code) == f"3 {project / made[0]} {project / made[1]}"


EXPLAINED = """
import inspect
from mine.more import hidden
from mine.sums import Terms, add
for each in (add, Terms, Terms.of, Terms.none, hidden):
    print(inspect.signature(each), inspect.getdoc(each))
"""


def test_compiled_functions_have_signatures_and_docstrings(project: Path) -> None:
    """A default that is not a literal is `...`: CPython has no other form for it."""
    (project / "mine" / "more.py").write_text(
        "def hidden(a: int) -> int:\n    'A.'\n    return a\n"
    )
    shown = run_in(project, EXPLAINED)
    modules = ["mine/sums.py", "mine/more.py"]
    compile_modules(project, modules, library="mine", out=project, undocumented=modules[1:])
    assert run_in(project, EXPLAINED).splitlines() == [
        '(left, right) Add two numbers; "quoted" \\ é.',
        "(first, *more, rest=()) Numbers to add.",
        "(text, separator=Ellipsis) Read numbers.",
        "(*, rest=Ellipsis) None",
        "(a) None",
    ]
    for text in ('Add two numbers; "quoted" \\ é.', "Numbers to add.", "Read numbers.", "A."):
        assert text in shown


def test_a_module_in_c_takes_the_place_of_the_one_in_python(project: Path) -> None:
    (project / "mine" / "answers.c").write_text(ANSWER)
    (project / "mine" / "answers.py").write_text("def answer() -> int:\n    return 41\n")
    (project / "mine" / "more.py").write_text("from .answers import answer\nfound = answer()\n")
    code = "from mine import more; print(more.found, more.__file__.endswith('.py'))"
    assert run_in(project, code) == "41 True"
    made = compile_modules(
        project,
        ["mine/more.py"],
        library="mine",
        out=project,
        context=["mine/answers.py"],
        sources=["mine/answers.c"],
    )
    assert native_files(project, "mine", "mine") == [project / file for file in made]
    assert run_in(project, code) == "42 False"


def test_compiled_code_calls_c_functions_directly(project: Path) -> None:
    """Which is seen by a header that gives another text than the module in Python."""
    (project / "mine" / "answers.h").write_text(NAMED)
    (project / "mine" / "answers.py").write_text(
        "from mypy_extensions import i64\n"
        "def named(data: bytes, size: i64) -> str:\n    return 'Python'\n"
    )
    (project / "mine" / "more.py").write_text(
        "from .answers import named\nfound = named(b'abc', 3)\n"
        "def again(size: int) -> str:\n    return named(b'abc', size)\n"
    )
    compile_modules(
        project,
        ["mine/more.py"],
        library="mine",
        out=project,
        context=["mine/answers.py"],
        functions=[
            CFunction("mine.answers.named", "Named", ("bytes", "i64"), "str", "mine/answers.h")
        ],
    )
    code = "from mine import more, answers; print(more.found, more.again(2), answers.named(b'', 0))"
    assert run_in(project, code) == "abc ab Python"


def test_c_that_does_not_compile_is_not_compiled(project: Path) -> None:
    (project / "mine" / "answers.c").write_text("no C")
    with pytest.raises(NotCompiled, match="CompileError"):
        compile_modules(
            project, ["mine/sums.py"], library="mine", out=project, sources=["mine/answers.c"]
        )


def test_code_that_mypyc_refuses_is_not_compiled(project: Path) -> None:
    (project / "mine" / "sums.py").write_text("def wrong() -> int:\n    return 'text'\n")
    with pytest.raises(NotCompiled, match="mypyc"):
        compile_modules(project, ["mine/sums.py"], library="mine", out=project / "out")
    assert not (project / "out").exists()


def test_without_a_compiler_nothing_is_compiled(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/bin/false")
    with pytest.raises(NotCompiled, match="CompileError"):
        compile_modules(project, ["mine/sums.py"], library="mine", out=project / "out")
    assert native_files(project, "mine", "mine") == []


def test_flags_for_size_reach_the_modules_that_are_to_be_small(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a flag that no compiler knows, which modules get it shows in what fails."""
    monkeypatch.setattr(compiling, "_SMALL_FLAGS", ("-fno-such-flag",))
    modules = ["mine/sums.py", "mine/more.py"]
    assert compile_modules(project, modules, library="mine", out=project / "out")
    with pytest.raises(NotCompiled, match="CompileError"):
        compile_modules(project, modules, library="mine", out=project / "o", small=modules[1:])
