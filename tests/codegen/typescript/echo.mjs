// Decodes and encodes again what another package wrote: rows of JSON, each a message as hex.
//
//     node echo.mjs SOURCES < ROWS
//
// A message with every field at its default is what the factory makes. Each truncated message is
// refused with a path. Prints how many messages came back as they went.

import assert from "node:assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { load, DecodeError } = await import(pathToFileURL(join(process.argv[2], "index.ts")).href);
let count = 0;
for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const row = JSON.parse(line);
  const codec = await load(row.message);
  const data = new Uint8Array(Buffer.from(row.hex, "hex"));
  const where = `${row.message} v${row.version} ${row.hex}`;
  const read = codec.decode(data, row.version);
  assert.strictEqual(Buffer.from(codec.encode(read, row.version)).toString("hex"), row.hex, where);
  if (row.is_default) {
    assert.deepStrictEqual(read, codec.create(), where);
  }
  for (let n = 0; n < data.length; n += Math.ceil(data.length / 20)) {
    try {
      codec.decode(data.subarray(0, n), row.version);
      assert.fail(`${where} was accepted with ${n} bytes`);
    } catch (error) {
      assert(error instanceof DecodeError, error);
      assert(error.path.startsWith(`${row.message}.`) && error.offset <= n, error);
    }
  }
  count++;
}
console.log(`${count} messages`);
