"""Puts docstrings and signatures into the C that mypyc generates, for `help` and `inspect`.

A compiled class or function has the docstring of its source, and a signature that
`inspect.signature` reads. mypyc writes a signature where every default is a literal, and no
docstring; CPython's format of a signature has literals only, so that another default is `...`, as
in stub files.

    def decode(name, *, limits=DEFAULT_LIMITS):  ->  "decode(name, *, limits=...)\n--\n\nDecode ..."
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from typing import Final, NamedTuple

_LITERAL: Final = r'(?:NULL|"(?:[^"\\]|\\.)*")'
_CLASS: Final = re.compile(
    rf'(\.tp_name = "(\w+)",\n(?:    \..*\n)*?    \.tp_doc = PyDoc_STR\()({_LITERAL})\)'
)
_FUNCTION: Final = re.compile(
    rf'(\{{"(\w+)",\s+\(PyCFunction\)CPyPy_(\w+),\s+[A-Z_| ]+, PyDoc_STR\()({_LITERAL})\)'
)


class _Documented(NamedTuple):
    """What a class or function says of itself; signature: as CPython's, "" if unknown."""

    signature: str = ""
    doc: str = ""


_UNKNOWN: Final = _Documented()


def with_docstrings(text: str, module: str, source: str) -> str:
    """Return the C of a module with the docstrings of its public classes and functions."""
    documented = dict(_documented(ast.parse(source)))
    parts = module.removesuffix(".py").split("/")
    prefixes = ["___".join(parts[start:]) + "___" for start in range(len(parts))]

    def of_class(match: re.Match[str]) -> str:
        return f"{match[1]}{_with_text(match[3], documented.get(match[2], _UNKNOWN))})"

    def of_function(match: re.Match[str]) -> str:
        if match[2] == "__init__":  # the signature is in the class's own docstring
            return f"{match[1]}NULL)"
        prefix = next((p for p in prefixes if match[3].startswith(p)), "")
        name = match[3].removeprefix(prefix).replace("___", ".")
        return f"{match[1]}{_with_text(match[4], documented.get(name, _UNKNOWN))})"

    return _FUNCTION.sub(of_function, _CLASS.sub(of_class, text))


def _documented(tree: ast.Module) -> Iterator[tuple[str, _Documented]]:
    """Yield the qualified names of a module's public classes and functions with what they say."""
    constants = dict(_constants(tree))
    pending: list[tuple[str, ast.stmt]] = [("", node) for node in tree.body]
    while pending:
        prefix, node = pending.pop()
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        doc = cleandoc(ast.get_docstring(node, clean=False) or "")
        if isinstance(node, ast.FunctionDef):
            bound = "" if not prefix or _is_static(node) else "$"
            arguments = f"({bound}{_arguments(node.args, constants)})"
        else:
            pending += [(f"{prefix}{node.name}.", inner) for inner in node.body]
            arguments = _arguments_of_class(node, constants)
        yield prefix + node.name, _Documented(arguments and f"{node.name}{arguments}", doc)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names of a module that are literals."""
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                if _is_literal(value):
                    yield name, value


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def _is_static(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list
    )


def _arguments_of_class(node: ast.ClassDef, constants: Mapping[str, ast.expr]) -> str:
    """Return the arguments of its constructor; "" if it inherits that."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return f"({_arguments(each.args, constants, first=1)})"
    return ""


def _arguments(
    arguments: ast.arguments, constants: Mapping[str, ast.expr], *, first: int = 0
) -> str:
    """Return arguments without their types, from that index on."""

    def literal(default: ast.expr) -> ast.expr:
        if isinstance(default, ast.Name):
            default = constants.get(default.id, default)
        return default if _is_literal(default) else ast.Constant(...)

    def untyped(argument: ast.arg) -> ast.arg:
        return ast.arg(argument.arg)

    plain = ast.arguments(
        posonlyargs=[untyped(each) for each in arguments.posonlyargs],
        args=[untyped(each) for each in arguments.args[first:]],
        vararg=arguments.vararg and untyped(arguments.vararg),
        kwonlyargs=[untyped(each) for each in arguments.kwonlyargs],
        kw_defaults=[each and literal(each) for each in arguments.kw_defaults],
        kwarg=arguments.kwarg and untyped(arguments.kwarg),
        defaults=[literal(each) for each in arguments.defaults],
    )
    return ast.unparse(plain)


def _with_text(literal: str, documented: _Documented) -> str:
    """Put a docstring after the signature in a C literal, and ours where mypyc has none."""
    from mypyc.codegen.cstring import c_string_initializer

    signature = ""
    if literal == "NULL" and documented.signature:
        signature = f"{documented.signature}\n--\n\n"
    added = f"{signature}{documented.doc}"
    if not added:
        return literal
    text: str = c_string_initializer(added.encode("utf-8", "backslashreplace"))
    return text if literal == "NULL" else f"{literal} {text}"
