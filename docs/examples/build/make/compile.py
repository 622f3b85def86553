"""compile.py FOLDER: compiles FOLDER/pinger/messages."""

import sys
from pathlib import Path

from kafkawire_codegen.compile import compile_modules

root = Path(sys.argv[1])
modules = [str(path.relative_to(root)) for path in root.glob("pinger/messages/[!_]*.py")]
compile_modules(root, sorted(modules), library="pinger", out=root)
