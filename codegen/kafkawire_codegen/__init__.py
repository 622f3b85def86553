"""Kafka message schemas -> Python codecs.

Build time only; imports nothing of kafkawire. `generate` is the whole of it, for a build hook of
your own:

    from kafkawire_codegen import generate
    generate(schemas=Path("schemas"), out=Path("src/mine/messages"), package="mine.messages")
"""

from __future__ import annotations

from .build import GeneratedPackage, generate, is_package_name, schemas_dir

__all__ = ["GeneratedPackage", "generate", "is_package_name", "schemas_dir"]
