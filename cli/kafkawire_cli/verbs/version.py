"""`kafkawire version`: shows versions and whether the codecs are compiled."""

from __future__ import annotations

import platform

import typer


def version() -> None:
    """Show versions and whether the codecs are compiled."""
    import kafkawire
    from kafkawire.messages import REGISTRY
    from kafkawire.primitives import reader

    compiled = not str(reader.__file__).endswith(".py")
    typer.echo(f"kafkawire {kafkawire.__version__}")
    typer.echo(f"python    {platform.python_version()} ({platform.python_implementation()})")
    if not compiled:
        typer.echo("codecs    interpreted")
        return
    native = [info for info in REGISTRY if is_compiled(info.module)]
    typer.echo(f"codecs    compiled: {len(native)} of {len(REGISTRY)} messages")


def is_compiled(module: str) -> bool:
    """Return whether the module of a message is compiled, without importing it."""
    from importlib.util import find_spec

    spec = find_spec(f"kafkawire.messages.{module}")
    return spec is not None and not str(spec.origin).endswith(".py")
