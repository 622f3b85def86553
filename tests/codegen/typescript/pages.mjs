// Resolves the name of a generated package to its sources: node --import pages.mjs EXAMPLE
// KAFKAWIRE_SOURCES is the folder of the sources.

import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const NAME = "kafka-messages";
const SOURCES = pathToFileURL(`${process.env.KAFKAWIRE_SOURCES}/`);

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== NAME && !specifier.startsWith(`${NAME}/`)) {
      return next(specifier, context);
    }
    const path = specifier === NAME ? "index" : specifier.slice(NAME.length + 1);
    return next(new URL(`${path}.ts`, SOURCES).href, context);
  },
});
