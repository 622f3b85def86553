"""Generates `pinger.messages`, and compiles it unless COMPILE=0."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

from kafkawire_codegen import generate
from kafkawire_codegen.compile import compile_modules


class MessagesHook(BuildHookInterface[Any]):
    """Runs once per wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        generated = generate(root / "schemas", root / "pinger" / "messages", "pinger.messages")
        build_data["artifacts"] += ["pinger/messages/*.py"]
        if os.environ.get("COMPILE") == "0":
            return
        modules = [f"pinger/messages/{module}.py" for module in generated.modules.values()]
        native = root / "build" / "native"
        files = compile_modules(root, modules, library="pinger", out=native)
        build_data["force_include"].update({str(native / file): file for file in files})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
