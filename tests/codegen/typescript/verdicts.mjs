// Holds a package against what Python says of the same bytes: rows of JSON on standard input.
//
//     node verdicts.mjs SOURCES < ROWS
//
// again: the bytes that a decoded message is encoded to; "" if it is not, null if it is refused.
// A varint beyond an int32 is negative for Python, as for Kafka, and too large here.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { load, DecodeError, EncodeError } = await import(pathToFileURL(join(process.argv[2], "index.ts")).href);
const beyond = (reason) => (reason.match(/\d{10}/g) ?? []).some((n) => Number(n) > 0x7ffffffe);
const wrong = [];
let accepted = 0;
let refused = 0;

async function again({ message, version, hex }) {
  const codec = await load(message);
  let read;
  try {
    read = codec.decode(Buffer.from(hex, "hex"), version);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return [null, error.message];
  }
  try {
    return [Buffer.from(codec.encode(read, version)).toString("hex"), ""];
  } catch (error) {
    if (!(error instanceof EncodeError)) throw error;
    return ["", error.message];
  }
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const row = JSON.parse(line);
  const [found, reason] = await again(row);
  found === null ? refused++ : accepted++;
  if (found !== row.again && !(found === null && beyond(reason))) {
    wrong.push({ ...row, found, reason });
  }
}
console.log(JSON.stringify({ accepted, refused, wrong: wrong.slice(0, 5) }));
