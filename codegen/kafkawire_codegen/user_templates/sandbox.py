"""Compiles and fills templates from elsewhere; beside `templating`, the only import of jinja2.

A template reads nothing but its values and the templates beside it, changes nothing, and makes
the same text each time; of its values it sees what docs/templates.md lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from traceback import walk_tb
from types import (
    BuiltinFunctionType,
    FunctionType,
    GeneratorType,
    MethodType,
    TracebackType,
)
from typing import Any, Final

import jinja2
import jinja2.meta
import jinja2.sandbox

from .exposed import NAMES
from .faults import TemplateFault
from .filters import FILTERS

NOT_REPRODUCIBLE: Final = ("lipsum", "random")
"""Jinja2's global function and its filter that give another result each time."""


def _text(value: object) -> object:
    """Refuse to print what has no text of its own, such as an address that differs each time."""
    own = type(value)
    has_none = own in NAMES or own.__repr__ is object.__repr__
    if isinstance(value, _NO_TEXT) or (has_none and own.__str__ is object.__str__):
        raise TypeError(f"a {own.__name__} cannot be printed: print an attribute of it, or a list")
    return value


_NO_TEXT: Final = (GeneratorType, FunctionType, MethodType, BuiltinFunctionType)


class Undefined(jinja2.StrictUndefined):
    """A value that does not exist: any use of it is an error, which suggests a name."""

    __slots__ = ()

    @property
    def _undefined_message(self) -> str:
        obj, name = self._undefined_obj, self._undefined_name
        attributes = NAMES.get(type(obj))
        if attributes is None or not isinstance(name, str):
            return super()._undefined_message
        close = get_close_matches(name, attributes, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"{type(obj).__name__} has no attribute {name!r}{hint}"


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, in which our values have the documented attributes alone."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may read an attribute."""
        attributes = NAMES.get(type(obj))
        if attributes is not None:
            return attr in attributes
        return super().is_safe_attribute(obj, attr, value)

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        """Make the value of an attribute that a template may not read."""
        if type(obj) in NAMES:
            return self.undefined(obj=obj, name=attribute)
        return super().unsafe_undefined(obj, attribute)


class Templates:
    """Templates by name, compiled when they are first filled.

    texts: each template's text by its name, which is how others include it. shown: how an error
    names the file of a template.
    """

    def __init__(self, texts: Mapping[str, str], shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._paths: dict[str, jinja2.Template] = {}

        def load(name: str) -> tuple[str, str, None] | None:
            return (texts[name], shown[name], None) if name in texts else None

        self._environment = _Environment(
            loader=jinja2.FunctionLoader(load),
            extensions=["jinja2.ext.loopcontrols"],
            undefined=Undefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            cache_size=-1,
            finalize=_text,
        )
        self._environment.filters |= FILTERS
        for name in NOT_REPRODUCIBLE:
            self._environment.filters.pop(name, None)
            self._environment.globals.pop(name, None)

    def compile(self, name: str) -> None:
        """Compile a template; TemplateFault if that is impossible."""
        try:
            self._environment.get_template(name)
        except Exception as error:  # noqa: BLE001 - Python refuses what is nested too deeply
            raise self._fault(error, name, "") from None

    def fill(self, name: str, values: Mapping[str, object], message: str) -> str:
        """Fill a template; TemplateFault for any error, with the message it was filled for."""
        try:
            return self._environment.get_template(name).render(values)
        except Exception as error:  # noqa: BLE001 - a template is a program: it can raise anything
            raise self._fault(error, name, message) from None

    def path(self, name: str, values: Mapping[str, object], message: str) -> str:
        """Fill the path of a template: its name without `.j2`."""
        try:
            compiled = self._paths.get(name)
            if compiled is None:
                compiled = self._environment.from_string(name.removesuffix(".j2"))
                self._paths[name] = compiled
            return compiled.render(values)
        except Exception as error:  # noqa: BLE001 - a template is a program: it can raise anything
            raise self._path_fault(error, name, message) from None

    def names_in_path(self, name: str) -> set[str]:
        """The variables that the path of a template uses; TemplateFault for a syntax error."""
        try:
            tree = self._environment.parse(name.removesuffix(".j2"))
        except Exception as error:  # noqa: BLE001 - Python refuses what is nested too deeply
            raise self._path_fault(error, name, "") from None
        return jinja2.meta.find_undeclared_variables(tree)

    def _path_fault(self, error: Exception, name: str, message: str) -> TemplateFault:
        return TemplateFault(self._shown[name], 0, message, f"in its path: {_reason(error)}")

    def _fault(self, error: Exception, name: str, message: str) -> TemplateFault:
        """Find the line of an error: the innermost one of a template."""
        if isinstance(error, jinja2.TemplateSyntaxError):
            file = error.filename or self._shown.get(error.name or name, name)
            return TemplateFault(file, error.lineno, "", _reason(error))
        file, line = self._shown[name], 0
        files = set(self._shown.values())
        for at, number in _lines(error.__traceback__):
            if at in files:
                file, line = at, number
        return TemplateFault(file, line, message, _reason(error))


def _lines(traceback: TracebackType | None) -> list[tuple[str, int]]:
    return [(frame.f_code.co_filename, line) for frame, line in walk_tb(traceback)]


def _reason(error: Exception) -> str:
    """Say what went wrong, in one line."""
    if isinstance(error, jinja2.TemplateNotFound):
        return f"no template {error.name!r}"
    text = " ".join((error.msg if isinstance(error, SyntaxError) else str(error)).split())
    return text if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {text}"
