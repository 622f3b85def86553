"""The command of a verb: its help lists options by task, and `--json` is the same in every verb.

`--json` means `--format json`, or `--format jsonl` where rows are written; the later one
counts, as with any option that is repeated.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

FORMAT: Final = "--format"
JSON: Final = "--json"
FILTER: Final = "--filter"
JSON_FORMS: Final = ("json", "jsonl")
OUTPUT: Final = ("--output", "--out")
"""The option for an output file or folder, and an abbreviation that is accepted."""

UsageError: Final[Any] = typer.BadParameter.__base__
NO_SUCH_OPTION: Final = "NoSuchOption"
"""The class of an error of click, which newer releases of Typer have a copy of."""

EXTRA: Final = "Got unexpected extra argument"
OUTPUTS: Final = ("-o", "--output")

ARGUMENTS: Final = "Arguments"
OPTIONS: Final = "Options"


class VerbCommand(TyperCommand):
    """A verb, or a subcommand of it.

    An option whose `rich_help_panel` is set is listed under that heading.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # passed on to Typer
        super().__init__(*arguments, **settings)
        names = {name for each in self.params for name in each.opts}
        self._spellings: dict[str, list[str]] = {}
        form = next((each for each in self.params if FORMAT in each.opts), None)
        value = None if form is None else _json_form(form)
        if form is not None and value is not None and JSON not in names:
            self._spellings[JSON] = [FORMAT, value]
            self.params.insert(self.params.index(form) + 1, _json_option(form, value))
        long, short = OUTPUT
        if long in names:
            self._spellings[short] = [long]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after other spellings of options were replaced."""
        try:
            return super().parse_args(ctx, self._in_one_spelling(args))
        except UsageError as error:
            from .kafka_tools import extra_argument

            if error.message.startswith(EXTRA):
                error.message += extra_argument(self.name or "")
            option = getattr(error, "option_name", None)
            if type(error).__name__ == NO_SUCH_OPTION and option is not None:
                error.message += self._what_is_meant(option, error)
            raise

    def _what_is_meant(self, option: str, error: Any) -> str:
        """Name the option that is meant, by Kafka's own tools or by a similar name."""
        similar, error.possibilities = error.possibilities, None
        from . import capture_tools, kafka_tools

        of_tools = kafka_tools.spelling(self.name or "", option)
        if of_tools:
            return of_tools
        field = option.lstrip("-").replace("-", "_")
        if any(FILTER in each.opts for each in self.params):
            if field in filter_fields():
                return f"; use {FILTER} '{field} == ...'"
            if option in capture_tools.OPTIONS:
                return f"; {capture_tools.OPTIONS[option]}"
        if option in OUTPUTS and not any("--output" in each.opts for each in self.params):
            return "; redirect the output, > FILE"
        return f"; did you mean {similar[0]}?" if similar else ""

    def _in_one_spelling(self, args: list[str]) -> list[str]:
        replaced: list[str] = []
        for at, argument in enumerate(args):
            if argument == "--":
                return replaced + args[at:]
            name, separator, value = argument.partition("=")
            spelling = self._spellings.get(name)
            if spelling is None or (separator and len(spelling) > 1):
                replaced.append(argument)
            else:
                replaced += [*spelling[:-1], f"{spelling[-1]}{separator}{value}"]
        return replaced

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, by task; the headings are in the order of their first options."""
        sections: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], OPTIONS: []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                kind = ARGUMENTS if isinstance(each, TyperArgument) else OPTIONS
                heading = getattr(each, "rich_help_panel", None) or kind
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def filter_fields() -> Collection[str]:
    """Name the fields of `--filter`."""
    from kafkawire.capture.filters.fields import FIELDS

    return FIELDS


def _json_form(form: Any) -> str | None:
    """Return the format that `--json` means, of a parameter of formats."""
    choices = getattr(form.type, "choices", None) or (form.metavar or "").split("|")
    values = [getattr(each, "value", each) for each in choices]
    return next((each for each in JSON_FORMS if each in values), None)


def _json_option(form: Any, value: str) -> TyperOption:
    """Declare `--json` for the help and the completion; it is replaced before the parser."""
    return TyperOption(
        param_decls=["as_json", JSON],
        is_flag=True,
        expose_value=False,
        default=False,
        help=f"Same as {FORMAT} {value}.",
        rich_help_panel=form.rich_help_panel,
    )
