"""Options that change the rules of a diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from .names import suggestion
from .options import pairs
from .panels import Panel

if TYPE_CHECKING:
    from kafkawire.reports.diagnosis.diagnosis import Diagnosis
    from kafkawire.reports.diagnosis.error_rule import RuleDefinition
    from kafkawire.reports.diagnosis.registry import RuleError, Settings
    from kafkawire.reports.diagnosis.rule import Scene


class RuleOptions(NamedTuple):
    """Options of every verb that diagnoses captures."""

    disable: Annotated[
        list[str] | None,
        typer.Option(
            "--disable",
            metavar="RULE",
            help="Do not apply this rule; repeatable.",
            rich_help_panel=Panel.DIAGNOSIS,
        ),
    ] = None
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="RULE.THRESHOLD=VALUE",
            help="Change a threshold; repeatable.",
            rich_help_panel=Panel.DIAGNOSIS,
        ),
    ] = None

    def diagnosis(self, scene: Scene) -> Diagnosis:
        """Make a diagnosis with the installed rules. Raises typer.BadParameter."""
        from kafkawire.reports.diagnosis.diagnosis import Diagnosis
        from kafkawire.reports.diagnosis.registry import RuleError

        rules = rules_in_use()
        try:
            return Diagnosis(scene, rules, self._settings())
        except RuleError as error:
            option = "--disable" if error.name in (self.disable or ()) else "--set"
            raise _usage_error(error, option) from None

    def _settings(self) -> Settings:
        """Parse the options."""
        from kafkawire.reports.diagnosis.registry import Settings

        limits: dict[tuple[str, str], float] = {}
        for key, text in pairs(self.change, "--set", "RULE.THRESHOLD=VALUE").items():
            rule, _, threshold = key.partition(".")
            try:
                limits[rule, threshold] = float(text)
            except ValueError:
                raise typer.BadParameter(
                    f"{key} must be a number, got {text!r}", param_hint="--set"
                ) from None
        return Settings(frozenset(self.disable or ()), limits)


UNCHANGED: Final = RuleOptions()


def rules_in_use() -> dict[str, RuleDefinition]:
    """Return the installed rules by name. Raises typer.BadParameter if one cannot be used."""
    from kafkawire.reports.diagnosis.registry import RuleError, installed_rules

    try:
        return installed_rules()
    except RuleError as error:
        raise _usage_error(error) from None


def _usage_error(error: RuleError, option: str | None = None) -> typer.BadParameter:
    reason = f"{error}{suggestion(error.name, error.names)}"
    return typer.BadParameter(reason, param_hint=option)
