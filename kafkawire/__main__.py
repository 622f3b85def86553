"""Runs the command line: `python -m kafkawire` is the command `kafkawire`.

The library does not import the command line; which function the command runs is what the
installed distribution says.
"""

from __future__ import annotations

from importlib.metadata import distribution


def main() -> None:
    """Run the `kafkawire` command of the installed distribution."""
    scripts = distribution("kafkawire").entry_points.select(group="console_scripts")
    scripts["kafkawire"].load()()


if __name__ == "__main__":
    main()
