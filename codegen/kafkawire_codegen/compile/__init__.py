"""Compiles Python modules with mypyc: the second step of a build, after `generate`.

Either all requested modules are compiled or none is; sources are not changed, and nothing is
written outside the output folder. A project that generates its own messages can compile them from
its own build hook:

    compile_modules(root, ["mine/messages/fetch_request.py"], library="mine", out=folder)

    *.py --mypyc--> C, one file a module --cc--> one shared library, and a shim for each module
    *.c, written by hand ----------------cc--> a native module each, in place of the Python beside
"""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from textwrap import shorten
from typing import Any, Final, NamedTuple

from . import native_text

# types only guide the compiler; following every import would read the whole package
# nor is a cache to be written into the folder that is compiled, which setuptools makes a wheel of
_MYPY_OPTIONS: Final = (
    "--config-file=",
    f"--cache-dir={os.devnull}",
    "--follow-imports=skip",
    "--ignore-missing-imports",
)

# no C++ exceptions pass through this code, so unwind tables are not needed
_C_FLAGS: Final = (
    ()
    if sys.platform == "win32"
    else (
        "-fvisibility=hidden",
        "-fno-asynchronous-unwind-tables",
        "-fno-ident",
        "-ffunction-sections",
    )
)
_SMALL_FLAGS: Final = () if sys.platform == "win32" else ("-Os",)

# no symbols but those exported (a profiler wants the others too); sections of a small file not
# padded to a page each
_STRIP: Final = () if os.environ.get("KAFKAWIRE_COMPILE_SYMBOLS") == "1" else ("-Wl,-s",)


def _packs_relocations() -> bool:
    """Whether the C library here loads packed relative relocations (glibc 2.36).

    They save a tenth of a library's size. Wheels for many systems are built where it is older, and
    go without.
    """
    name, version = platform.libc_ver()
    numbers = version.split(".")[:2]
    return name == "glibc" and [int(each) for each in numbers if each.isdigit()] >= [2, 36]


_RELOCATIONS: Final = ("-Wl,-z,pack-relative-relocs",) if _packs_relocations() else ()
_LINK_FLAGS: Final = (
    (
        *_STRIP,
        *_RELOCATIONS,
        "-Wl,--gc-sections",
        "-Wl,-z,noseparate-code",
        "-Wl,--hash-style=gnu",
        "-Wl,--build-id=none",
    )
    if sys.platform == "linux"
    else ()
)

# small modules need no page of their own for what is written once; besides, a module's own file
# holds one function, which finds the module in the library and needs no constructors
_SMALL_LINK_FLAGS: Final = ("-Wl,-z,norelro",) if sys.platform == "linux" else ()
_SHIM_FLAGS: Final = ("-nostartfiles", *_SMALL_LINK_FLAGS) if sys.platform == "linux" else ()
_SHIM_C_FLAGS: Final = () if sys.platform == "win32" else ("-Os",)


# a message that trusts the layout of its base class, and where that is
_LINKED: Final = re.compile(r"^class \w+\(LinkedMessage\):", re.MULTILINE)
_BASE_CLASSES: Final = "primitives/structure.py"


class CFunction(NamedTuple):
    """A function of a module in C, which a header offers to compiled modules.

    name: in Python, with its module; c_name: in C. parameters, result: bool, bytes, i64, list or
    str; a parameter may be a BytesWriter of librt.
    """

    name: str
    c_name: str
    parameters: tuple[str, ...]
    result: str
    header: str


class NotCompiled(Exception):
    """The modules could not be compiled; the text has the step and the reason."""


def compile_modules(  # noqa: PLR0913 - what a build consists of
    root: Path,
    modules: Sequence[str],
    *,
    library: str,
    out: Path,
    context: Sequence[str] = (),
    rare: Collection[str] = (),
    small: Collection[str] = (),
    undocumented: Collection[str] = (),
    sources: Sequence[str] = (),
    functions: Sequence[CFunction] = (),
) -> list[str]:
    """Compile modules into one shared library and return the files made, relative to `out`.

    root: the folder that the package's import name starts from; modules are paths relative to it.
    library: names what the modules share, `<library>__mypyc`, which lies beside the package: inside
        it, mypyc would give some modules a wrong `__file__`.
    context: modules that stay interpreted, and whose types the compiled ones rely on.
    rare: those of `modules` that are not run for each message: they are compiled for size.
    small: those of `modules` that had better be small than fast: their private functions cannot be
        called from Python, and tracebacks do not show their lines.
    undocumented: those of `modules` that users do not import: without docstrings and signatures.
    sources: C files that are each an extension module by itself, where `x/y.c` is `x.y`.
    functions: those that compiled code calls in C; with a mypyc that does not know how, it calls
        them as any function of Python.

    Raises NotCompiled: no mypy, no compiler, or code that mypyc does not take.
    """
    out = out.resolve()
    _refuse_linked(root, modules)
    _declare(functions)
    with chdir(root), tempfile.TemporaryDirectory(prefix="mypyc-") as work:
        extensions = _translate(list(modules), list(context), library, work)
        native_text.edit(
            Path(work),
            {module: Path(module).read_text("utf-8") for module in modules},
            undocumented,
        )
        headers = {function.c_name: function.header for function in functions}
        native_text.include(Path(work), headers)
        for extension in extensions:
            extension.include_dirs = [*extension.include_dirs, str(root.resolve())]
        extensions += [_extension(source) for source in sources]
        small_files = {native_text.c_file(module) for module in small}
        rare_files = {native_text.c_file(module) for module in rare}
        for file in Path(work).rglob("*.c"):
            if file.name in small_files:
                native_text.shrink(file)
        return sorted(_build(extensions, Path(work), out, small_files | rare_files))


def _declare(functions: Sequence[CFunction]) -> None:
    """List for mypyc which calls are of functions in C."""
    try:
        from mypyc.ir import ops, rtypes
        from mypyc.ir.rtypes import bytes_writer_rprimitive
        from mypyc.primitives.registry import function_op, function_ops
    except ImportError:  # no mypyc, or one that has them elsewhere
        return
    types = {
        "BytesWriter": bytes_writer_rprimitive,
        "bool": rtypes.bool_rprimitive,
        "bytes": rtypes.bytes_rprimitive,
        "i64": rtypes.int64_rprimitive,
        "list": rtypes.list_rprimitive,
        "str": rtypes.str_rprimitive,
    }
    for function in functions:
        function_ops.pop(function.name, None)  # of an earlier build in this process
        function_op(
            name=function.name,
            arg_types=[types[each] for each in function.parameters],
            return_type=types[function.result],
            c_function_name=function.c_name,
            error_kind=ops.ERR_MAGIC,
        )


def _refuse_linked(root: Path, modules: Sequence[str]) -> None:
    """Raise for messages of the runtime's own package without the runtime.

    Compiled messages and their base class rely on each other's memory layout: compiled separately,
    they would read invalid memory.
    """
    runtime = {module for module in modules if module.endswith(_BASE_CLASSES)}
    for module in modules:
        text = (root / module).read_text("utf-8")
        if not runtime and _LINKED.search(text):
            reason = "generated as a part of its runtime's package, and must be compiled with it"
            raise NotCompiled(f"{module} is {reason}: generate it with its own package name")


def native_files(root: Path, package: str, library: str) -> list[Path]:
    """Find the files that `compile_modules` made of a package below `root`, for any Python."""
    library_files = root.glob(f"{library}__mypyc.*")
    modules = (root / package).rglob("*")
    return sorted(p for p in (*library_files, *modules) if p.suffix in (".so", ".pyd"))


def _translate(modules: list[str], context: list[str], library: str, work: str) -> list[Any]:
    try:
        from mypyc.build import mypycify
    except ImportError as error:
        raise NotCompiled(f"mypyc cannot be imported: {error}") from error
    try:
        extensions = mypycify(
            [*_MYPY_OPTIONS, *modules, *context],
            only_compile_paths=modules,
            opt_level=os.environ.get("KAFKAWIRE_COMPILE_OPTIMISATION", "2"),
            debug_level="0",
            multi_file=True,
            group_name=library,
            target_dir=work,
        )
    except SystemExit as error:  # mypyc reports type errors this way
        raise NotCompiled(f"mypyc: {error}") from None
    for extension in extensions:
        # a new list each: mypyc shares one among all extensions
        is_shim = extension.name != f"{library}__mypyc"
        more = (*_C_FLAGS, *_SHIM_C_FLAGS) if is_shim else _C_FLAGS
        extension.extra_compile_args = [*extension.extra_compile_args, *more]
        more = (*_LINK_FLAGS, *_SHIM_FLAGS) if is_shim else _LINK_FLAGS
        extension.extra_link_args = [*extension.extra_link_args, *more]
    return extensions


def _extension(source: str) -> Any:
    """Make the extension of a module in C."""
    from setuptools import Extension

    name = source.removesuffix(".c").replace("/", ".")
    flags = () if sys.platform == "win32" else ("-O2", *_C_FLAGS)
    link_flags = [*_LINK_FLAGS, *_SMALL_LINK_FLAGS]
    return Extension(name, [source], extra_compile_args=[*flags], extra_link_args=link_flags)


def _build(extensions: list[Any], work: Path, out: Path, small: set[str]) -> list[str]:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import BaseError, CCompilerError

    jobs = os.cpu_count() or 1

    class Command(build_ext):
        """Compiles the C files of one extension in parallel: nearly all belong to the library."""

        def build_extensions(self) -> None:
            compile_some = self.compiler.compile

            def compile_one(source: str, options: dict[str, Any]) -> list[str]:
                more = _SMALL_FLAGS if Path(source).name in small else ()
                flags = [*(options.get("extra_postargs") or ()), *more]
                return list(compile_some([source], **{**options, "extra_postargs": flags}))

            def compile_each(sources: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(jobs) as pool:
                    objects = pool.map(lambda source: compile_one(source, options), sources)
                    return [file for files in objects for file in files]

            self.compiler.compile = compile_each
            super().build_extensions()

    command = Command(Distribution({"name": "native", "ext_modules": extensions}))
    command.build_lib = str(out)
    command.build_temp = str(work / "objects")
    command.parallel = jobs
    try:
        command.ensure_finalized()
        command.run()
    except (BaseError, CCompilerError, OSError) as error:
        # the compiler has printed the error; do not repeat its long command line
        raise NotCompiled(f"{type(error).__name__}: {shorten(str(error), 120)}") from error
    return [os.path.relpath(file, out) for file in command.get_outputs()]
