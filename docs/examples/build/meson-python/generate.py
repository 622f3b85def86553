"""generate.py SOURCES MESSAGES [LIBRARY]: generates a folder, and compiles it with LIBRARY."""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kafkawire_codegen import generate
from kafkawire_codegen.compile import compile_modules

sources, messages, *library = map(Path, sys.argv[1:])
with TemporaryDirectory() as folder:
    root = Path(folder)
    shutil.copytree(sources / "pinger", root / "pinger")
    package = root / "pinger" / "messages"
    generated = generate(sources / "schemas", package, "pinger.messages")
    if library:
        modules = [f"pinger/messages/{module}.py" for module in generated.modules.values()]
        compile_modules(root, modules, library="pinger", out=root)
        shutil.move(root / library[0].name, library[0])
    shutil.copytree(package, messages, dirs_exist_ok=True)
