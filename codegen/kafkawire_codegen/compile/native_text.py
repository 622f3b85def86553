"""Edits the C that mypyc generates: errors that name a field, size; with docstrings of the source.

Only what stands in tables of text, in failing paths and in deallocators is edited; code that
runs for each message stays as mypyc wrote it.

    setter            "str object expected; got int" -> "group_id: str expected, got int"
    constructor       the same, of messages
    private function  of messages: Python cannot call it, so its wrapper is dropped
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from .docstrings import with_docstrings

# a deallocator that does not begin by untracking its instance: the class is not garbage collected
_ACYCLIC_DEALLOC: Final = re.compile(
    r"\{\n *CPy_TRASHCAN_BEGIN\(self, \w+\)\n((?: .*\n)*?) *CPy_TRASHCAN_END\(self\)\n"
)

# where a generated C file begins, and a row of its table of what Python may call
_INCLUDED: Final = re.compile(r'^#include "__native_internal_\w+\.h"\n', re.MULTILINE)
_PRIVATE_FUNCTION: Final = re.compile(
    r'^    \{"_[a-z]\w*", \(PyCFunction\)CPyPy_\w+, .*\},\n', re.MULTILINE
)

# the first line of a generated message's module
_MESSAGE: Final = re.compile(r'""".* Generated: do not edit\."""')

# the functions that take values for the fields of an instance, with a field's name in each
_INIT: Final = re.compile(
    r"^( *)PyObject \*CPyPy_\w+_____init__\([^;]*?\{\n.*?^\1\}\n", re.MULTILINE | re.DOTALL
)
_SETTER: Final = re.compile(
    r'        PyErr_SetString\(PyExc_AttributeError,\n            "\'\w+\' object attribute'
    r" '(\w+)' cannot be deleted\"\);\n        return -1;\n(.*?^\}\n)",
    re.MULTILINE | re.DOTALL,
)
_ARGUMENT_ERROR: Final = re.compile(r'CPy_TypeError\(("[^"]*"), (obj_(?!self\b)(\w+))\)')
_VALUE_ERROR: Final = re.compile(r'CPy_TypeError\(("[^"]*"), value\)')
_MODULE_NAME: Final = re.compile(r"(?:\w+\.)+(?=\w)")

_ERRORS_FILE: Final = "exc_ops.c"
"""The part of mypyc's runtime that the functions below join."""

_DECLARED: Final = """\
void CPy_FieldTypeError(const char *name, const char *expected, PyObject *value);
int CPy_FieldNotDeletable(void *self, const char *name);
"""
_ERRORS: Final = """
void CPy_FieldTypeError(const char *name, const char *expected, PyObject *value) {
    PyErr_Format(PyExc_TypeError, "%s: %s expected, got %s", name, expected,
                 Py_TYPE(value)->tp_name);
}

int CPy_FieldNotDeletable(void *self, const char *name) {
    PyErr_Format(PyExc_AttributeError, "'%s' object attribute '%s' cannot be deleted",
                 Py_TYPE((PyObject *)self)->tp_name, name);
    return -1;
}
"""


def c_file(module: str) -> str:
    """Return the name of mypyc's C file for a module."""
    return f"__native_{module.removesuffix('.py').replace('/', '___')}.c"


def edit(work: Path, sources: Mapping[str, str], undocumented: Collection[str]) -> None:
    """Edit the C files in a folder; `sources` are the compiled modules, path to Python text."""
    runtime = list(work.rglob(_ERRORS_FILE))
    for file in runtime:
        file.write_text(file.read_text("utf-8") + _ERRORS, "utf-8")
    for module, source in sources.items():
        for file in work.rglob(c_file(module)):
            text = _mended(file.read_text("utf-8"))
            is_message = _MESSAGE.match(source) is not None
            if runtime:
                text = _with_setter_errors(text)
            if runtime and is_message:
                text = _with_constructor_errors(text)
            if module not in undocumented:
                text = with_docstrings(text, module, source)
            if is_message:
                text = _PRIVATE_FUNCTION.sub("", text)
            file.write_text(text, "utf-8")


def include(work: Path, headers: Mapping[str, str]) -> None:
    """Include the headers of the C functions that a file calls; `headers` is by function."""
    for file in work.rglob("__native_*.c"):
        text = file.read_text("utf-8")
        needed = {header for name, header in headers.items() if f"{name}(" in text}
        if needed:
            lines = "".join(f'#include "{header}"\n' for header in sorted(needed))
            file.write_text(_INCLUDED.sub(rf"\g<0>{lines}", text, count=1), "utf-8")


def shrink(file: Path) -> None:
    """Remove a quarter of the code of a rarely used module.

    That is the code that adds lines to tracebacks, and the wrappers by which Python calls private
    functions.
    """
    text = file.read_text("utf-8")
    text = _INCLUDED.sub(r"\g<0>#define CPy_AddTraceback(...) ((void)0)\n", text, count=1)
    file.write_text(_PRIVATE_FUNCTION.sub("", text), "utf-8")


def _mended(text: str) -> str:
    """Remove the trashcan from the deallocators of acyclic classes.

    CPython's trashcan keeps what is freed 50 levels deep in a list threaded through the garbage
    collector's header. mypyc (2.4) uses it for acyclic classes too, whose instances have no such
    header: the memory in front of them would be overwritten.
    """
    return _ACYCLIC_DEALLOC.sub(r"{\n\1", text)


def _with_setter_errors(text: str) -> str:
    """Let the setters of attributes name the one whose value is of a wrong type."""

    def setter(match: re.Match[str]) -> str:
        body = _VALUE_ERROR.sub(lambda m: _error(match[1], m[1], "value"), match[2])
        return f'        return CPy_FieldNotDeletable(self, "{match[1]}");\n{body}'

    return _SETTER.sub(setter, _INCLUDED.sub(rf"\g<0>{_DECLARED}", text, count=1))


def _with_constructor_errors(text: str) -> str:
    """Let constructors name the field whose value is of a wrong type."""

    def init(match: re.Match[str]) -> str:
        return _ARGUMENT_ERROR.sub(lambda m: _error(m[3], m[1], m[2]), match[0])

    return _INIT.sub(init, text)


def _error(field: str, expected: str, value: str) -> str:
    return f'CPy_FieldTypeError("{field}", {_MODULE_NAME.sub("", expected)}, {value})'
