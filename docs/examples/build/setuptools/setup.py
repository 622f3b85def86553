"""Generates `pinger.messages`, and compiles it unless COMPILE=0."""

import os
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

from kafkawire_codegen import generate
from kafkawire_codegen.compile import compile_modules

COMPILED = os.environ.get("COMPILE") != "0"


class BuildMessages(build_py):
    """Adds the messages to what is copied into a wheel."""

    def run(self) -> None:
        super().run()
        root = Path("." if self.editable_mode else self.build_lib)
        generated = generate(Path("schemas"), root / "pinger" / "messages", "pinger.messages")
        if COMPILED:
            modules = [f"pinger/messages/{module}.py" for module in generated.modules.values()]
            compile_modules(root, modules, library="pinger", out=root)


class PlatformDistribution(Distribution):
    """Makes the wheel one of this platform, if it has compiled modules."""

    def has_ext_modules(self) -> bool:
        return COMPILED


setup(cmdclass={"build_py": BuildMessages}, distclass=PlatformDistribution)
