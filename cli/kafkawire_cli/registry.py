"""Lists the verbs (subcommands) and imports the module of a verb when it is called.

Listing the verbs imports none of them; the options and the help of a verb are in its module
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, Final, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kafkawire.display import did_you_mean, printable
from kafkawire.errors import MissingPackage

from .notes import keep_verb, print_note
from .verb_command import VerbCommand
from .verb_table import VERBS, Task

CLICK_ERROR: Final[Any] = next(
    one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException"
)
"""Base class of usage errors: from `click`, or from the copy in newer releases of Typer."""

HELP_SHOWN: Final = "NoArgsIsHelpError"
"""The usage error whose message is the help."""

MISSING: Final = "MissingParameter"
"""The usage error for an argument that is missing; the help of the argument is added."""

INVALID_TYPE: Final = re.compile(r"('.*') is not a valid (int|float)( range)?\.", re.DOTALL)
INVALID_CHOICE: Final = re.compile(r"'(.*)' is not one of ('.*')\.", re.DOTALL)
TYPE_NAMES: Final = {"int": "an integer", "float": "a number"}
"""Names of types in Typer's messages -> those shown."""

HABITS: Final = {
    "help": "; use --help, also after a command",
    "-v": "; did you mean --version?",
    "-V": "; did you mean --version?",
    "errors": "; see kafkawire summary and kafkawire diagnose",
    "stats": "; did you mean 'summary'?",
    "consumer-groups": "; did you mean 'groups'?",
}
"""What users of other tools type in place of a verb -> what is added to the error."""
CAPTURE: Final = re.compile(r"\.p?cap(?:ng)?\d*(?:\.(?:gz|zst))?$")
"""How the name of a capture ends."""

HELP: Final = {"help_option_names": ["-h", "--help"]}


def _in_plain_words(message: str) -> str:
    invalid = INVALID_TYPE.fullmatch(message)
    if invalid is not None:
        return f"must be {TYPE_NAMES[invalid[2]]}, got {invalid[1]}"
    choice = INVALID_CHOICE.fullmatch(message)
    if choice is not None:
        return message.rstrip(".") + did_you_mean(choice[1], re.findall("'(.*?)'", choice[2]))
    return message


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    """Escape the messages of usage errors: they contain file names, values and file content."""
    try:
        yield
    except CLICK_ERROR as error:
        if type(error).__name__ != HELP_SHOWN:
            place: str = getattr(error, "place", "")  # of `input.filters.InvalidFilter`
            error.message = printable(_in_plain_words(error.message)) + place
            if type(error).__name__ == MISSING and not error.message:
                error.message = getattr(error.param, "help", None) or ""
        if getattr(error, "param", None) is not None and error.param_hint is None:
            hint = error.param.get_error_hint(error.ctx)
            error.param_hint = hint.replace("'", "") if hint.startswith("'-") else hint
        raise


class Verbs(TyperGroup):
    """The group of all verbs.

    Listing and completion use placeholders with a name and a help text; the real command replaces
    its placeholder when it is resolved.
    """

    def __init__(self, **settings: Any) -> None:  # passed on to Typer
        super().__init__(**settings | {"suggest_commands": False})  # ours are below
        for name, verb in VERBS.items():
            self.add_command(TyperCommand(name, help=verb.help))

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Parse the arguments; usage errors are escaped."""
        with _escaped_usage_errors():
            try:
                return super().make_context(*args, **settings)
            except CLICK_ERROR as error:
                error.message += HABITS.get(getattr(error, "option_name", ""), "")
                raise

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; usage errors are escaped, a missing package is one line and exit code 2."""
        try:
            with _escaped_usage_errors():
                return super().invoke(ctx)
        except MissingPackage as error:
            print_note(str(error))
            raise typer.Exit(2) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - of click
        """List the verbs by task."""
        for task in Task:
            with formatter.section(task.value):
                formatter.write_dl(
                    [(n, verb.help) for n, verb in VERBS.items() if verb.task is task]
                )

    def resolve_command(
        self,
        ctx: Any,  # a click Context; its module depends on the release of Typer
        args: list[str],
    ) -> tuple[str | None, TyperCommand | TyperGroup | None, list[str]]:
        """Import the command that the first argument names."""
        try:
            name, _, rest = super().resolve_command(ctx, args)
        except CLICK_ERROR as error:
            error.message = error.message.rstrip(".") + _what_is_meant(args[0])
            raise
        keep_verb(name or "")
        return name, None if name is None else command(name), rest


def _what_is_meant(word: str) -> str:
    """Return `; ` and what to type in place of a word that is not a verb; "" if unknown."""
    if word in HABITS:
        return HABITS[word]
    if CAPTURE.search(word):
        return "; to decode a capture: kafkawire decode FILE"
    from kafkawire.capture.tables import TABLES
    from kafkawire.reports.tables import REPORT_TABLES

    if word in {*TABLES, *REPORT_TABLES}:
        return f"; for this table: kafkawire sql 'FROM {word}' FILE"
    return did_you_mean(word, VERBS)


def command(name: str) -> TyperCommand | TyperGroup:
    """Import a verb and return its command."""
    verb = VERBS[name]
    attribute = getattr(import_module(f".verbs.{verb.module}", __package__), verb.attribute)
    if not isinstance(attribute, typer.Typer):
        app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings=HELP)
        app.command(name, cls=VerbCommand)(flattened(attribute))
        attribute = app
    result = get_command(attribute)
    assert isinstance(result, TyperCommand | TyperGroup)
    result.name = name
    return result


def flattened(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace each group of options, a parameter whose type is a NamedTuple, by its fields."""
    hints = get_type_hints(verb, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if hasattr(hint, "_fields")}
    if not groups:
        return verb
    parameters: list[Parameter] = []
    for parameter in signature(verb).parameters.values():
        name = parameter.name
        if name in groups:
            parameters += _parameters_of(groups[name])
        else:
            parameters.append(
                parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[name])
            )

    def called(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(*(values.pop(field) for field in group._fields))
        verb(**values)

    made: Any = called
    made.__doc__, made.__name__ = verb.__doc__, verb.__name__
    made.__signature__ = Signature(parameters)
    return called


def _parameters_of(group: Any) -> Iterator[Parameter]:
    """Make a parameter of each field of a NamedTuple."""
    for name, hint in get_type_hints(group, include_extras=True).items():
        default = group._field_defaults.get(name, Parameter.empty)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
