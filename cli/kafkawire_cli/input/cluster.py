"""Options, settings and error handling of the verbs for live clusters.

An invalid setting is a usage error (exit code 2); an unreachable cluster or an error response
is one line on standard error and exit code 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from ..notes import print_note
from .inputs import looks_like_address
from .options import ReportOptions, pairs
from .panels import Panel
from .profiles import (
    from_java,
    of_environment,
    profile_files,
    read_profile,
    read_properties,
    variable,
)

if TYPE_CHECKING:
    from kafkawire.client.config import Key
    from kafkawire.net.admin import Admin

CLUSTER: Final = "--bootstrap-server"
CONFIG: Final = "--config"
PROFILE: Final = "--profile"
OPTION: Final = "--option"
DEFAULT: Final = "localhost:9092"
SERVERS: Final = "bootstrap.servers"


class ClusterOptions(NamedTuple):
    """Which cluster, and how a client connects to it."""

    bootstrap: Annotated[
        str | None,
        typer.Option(
            CLUSTER,
            "-b",
            metavar="HOST[:PORT],...",
            help=f"Bootstrap servers of a cluster [default: {DEFAULT}; topics, groups, "
            "transactions: none].",
            show_default=False,
            rich_help_panel=Panel.CLUSTER,
        ),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            CONFIG,
            metavar="FILE",
            help="Client configuration, a properties file.",
            rich_help_panel=Panel.CLUSTER,
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            PROFILE,
            metavar="NAME",
            help="Client configuration, in kafkawire.toml.",
            rich_help_panel=Panel.CLUSTER,
        ),
    ] = None
    setting: Annotated[
        list[str] | None,
        typer.Option(
            OPTION,
            "-X",
            metavar="KEY=VALUE",
            help="Client configuration property; repeatable.",
            rich_help_panel=Panel.CLUSTER,
        ),
    ] = None

    def with_environment(self, environment: Mapping[str, str]) -> ClusterOptions:
        """Fill in what the environment names: KAFKAWIRE_CONFIG and KAFKAWIRE_PROFILE."""
        config, profile = (environment.get(variable(name)) for name in ("config", "profile"))
        return self._replace(
            config=self.config or (Path(config) if config else None),
            profile=self.profile or profile,
        )

    @property
    def names_a_cluster(self) -> bool:
        return any(each is not None for each in (self.bootstrap, self.config, self.profile))


NO_OPTIONS: Final = ClusterOptions()
TIMEOUTS: Final = {
    "default.api.timeout.ms": 10_000,
    "max.block.ms": 10_000,
    "bootstrap.timeout.ms": 5_000,
    "bootstrap.attempts": 5,
}
"""Limits for interactive use, shorter than Kafka's defaults. Five attempts are refused within a
second; a connection may take longer: a packet that is lost is sent again after a second.
"""


class Configuration(NamedTuple):
    """The configuration of a client. sources: the option or variable of each key, for errors."""

    values: dict[str, Any]
    sources: dict[str, str]


def configuration(options: ClusterOptions, keys: Mapping[str, Key], **more: Any) -> Configuration:
    """Build the configuration of a client; what is later in this list counts.

    The profile, the file, the environment, `more` (whose names have `_` in place of dots),
    `--option KEY=VALUE`, the bootstrap servers.
    """
    options = options.with_environment(os.environ)
    settings = {name.replace("_", "."): value for name, value in more.items() if value is not None}
    layers: list[tuple[str, dict[str, Any]]] = [
        (PROFILE, _profile(options.profile, keys)),
        (CONFIG, _file(options.config, keys)),
        ("", of_environment(os.environ, keys)),
        (OPTION, settings | pairs(options.setting, OPTION)),
        (CLUSTER, {} if options.bootstrap is None else {SERVERS: options.bootstrap}),
    ]
    values: dict[str, Any] = {key: value for key, value in TIMEOUTS.items() if key in keys}
    values[SERVERS] = DEFAULT
    sources = {SERVERS: CLUSTER}
    for source, layer in layers:
        values |= layer
        sources |= {key: source or variable(key) for key in layer}
    return Configuration(values, sources)


def _profile(name: str | None, keys: Mapping[str, Key]) -> dict[str, Any]:
    if name is None:
        return {}
    files = profile_files(Path.cwd(), Path.home(), os.environ)
    with _usage_errors(PROFILE):
        return _of_this_client(read_profile(name, files), keys)


def _file(path: Path | None, keys: Mapping[str, Key]) -> dict[str, Any]:
    if path is None:
        return {}
    if "=" in path.name and not os.path.exists(path):
        raise typer.BadParameter(
            f"{path}: No such file or directory; use {OPTION} KEY=VALUE for a setting of the "
            "client, --topic-config KEY=VALUE for one of a topic",
            param_hint=CONFIG,
        )
    with _usage_errors(CONFIG):
        return _of_this_client(from_java(read_properties(path.read_text("utf-8"))), keys)


@contextmanager
def _usage_errors(option: str) -> Iterator[None]:
    """Make errors of a file usage errors."""
    try:
        yield
    except OSError as error:
        message = f"{error.filename}: {error.strerror}"
        raise typer.BadParameter(message, param_hint=option) from None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _of_this_client(values: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Leave out the keys of other clients: a file may serve producers, consumers and admins."""
    if values.keys() <= keys.keys():
        return dict(values)
    from kafkawire.client.consumer import CONSUMER_KEYS
    from kafkawire.client.producer import PRODUCER_KEYS
    from kafkawire.client.share_consumer import SHARE_CONSUMER_KEYS
    from kafkawire.net.admin import ADMIN_KEYS

    consumers = CONSUMER_KEYS.keys() | SHARE_CONSUMER_KEYS.keys()
    others = (PRODUCER_KEYS.keys() | consumers | ADMIN_KEYS.keys()) - keys.keys()
    return {key: value for key, value in values.items() if key not in others}


def admin_configuration(options: ClusterOptions) -> Configuration:
    """Build the configuration of an admin client."""
    from kafkawire.net.admin import ADMIN_KEYS

    return configuration(options, ADMIN_KEYS)


def admin(values: Mapping[str, Any]) -> Admin:
    """Create an admin client."""
    from kafkawire.net.admin import Admin

    return Admin(values)


def admin_beside(values: Mapping[str, Any]) -> Admin:
    """Create an admin client for the cluster of another client, from that client's settings."""
    from kafkawire.net.admin import ADMIN_KEYS, Admin

    return Admin({key: value for key, value in values.items() if key in ADMIN_KEYS})


IN_CAPTURES: Final[Mapping[str, str]] = {"named": "; of captures, --filter 'topic == NAME'"}
"""Parameter for a cluster -> what does the same for captures."""


NAMING: Final = ("--group", "--transactional-id", "--topic")
"""Options that name what a verb describes; a verb's subject is the first that it has."""


def is_live(
    context: typer.Context,
    captures: list[str] | None,
    cluster: ClusterOptions,
    *captures_only: str,
) -> bool:
    """Return whether a verb shall query a cluster rather than captures.

    Both, neither, or an option of the other are usage errors. captures_only: parameters that are
    only allowed with captures, besides those of every report.
    """
    if cluster.names_a_cluster and captures:
        name = captures[0]
        named = next((each for each in NAMING if each in _options(context)), None)
        hint = "" if named is None or os.path.exists(name) else f"; did you mean {named} {name}?"
        reason = f"not allowed together with captures{hint}"
        raise typer.BadParameter(reason, param_hint=_first(cluster))
    live = not captures and (
        cluster.with_environment(os.environ).names_a_cluster or variable(SERVERS) in os.environ
    )
    address = next(filter(looks_like_address, captures or []), None)
    if address is not None:
        raise typer.BadParameter(
            f"{address}: No such file or directory; did you mean -b {address}?",
            param_hint="FILE...",
        )
    if not live and not captures:
        raise typer.BadParameter(
            f"expected captures, or a cluster with {CLUSTER} HOST:PORT", param_hint="FILE..."
        )
    options = {each.name: each.opts[0] for each in context.command.params if each.name is not None}
    common = {"files", "form", "wanted"}
    of_captures = {*ReportOptions._fields, *captures_only} - common
    wrong = of_captures if live else options.keys() - of_captures - common
    for name in sorted(wrong):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            subject = "captures" if live else f"a cluster ({CLUSTER})"
            reason = f"only allowed with {subject}{'' if live else IN_CAPTURES.get(name, '')}"
            raise typer.BadParameter(reason, param_hint=options[name])
    return live


def _options(context: typer.Context) -> set[str]:
    return {option for each in context.command.params for option in each.opts}


def _first(cluster: ClusterOptions) -> str:
    """Return the first option that names the cluster."""
    options = zip((CLUSTER, CONFIG, PROFILE), cluster, strict=False)
    return next(option for option, value in options if value is not None)


def run(work: Callable[[], Coroutine[Any, Any, None]], config: Configuration) -> None:
    """Run a coroutine; errors of the client become one line on stderr and an exit code.

    An argument that no request can carry, such as an empty topic name, is a usage error.
    """
    import asyncio  # verbs that read captures do without

    from kafkawire.client.failures import BrokerError, ClientError, ConfigurationError
    from kafkawire.errors import EncodeError, LocalProtocolError

    from ..advice import with_advice

    try:
        asyncio.run(work())
    except ConfigurationError as error:
        hint = config.sources.get(error.key, OPTION)
        raise typer.BadParameter(str(error), param_hint=hint) from None
    except EncodeError as error:
        raise typer.BadParameter(str(error)) from None
    except BrokerError as error:
        print_note(with_advice(error.code, str(error)))
        raise typer.Exit(1) from None
    except (ClientError, LocalProtocolError) as error:
        print_note(str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
