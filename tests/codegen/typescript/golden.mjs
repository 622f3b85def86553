// Holds a generated package against Apache Kafka's own bytes and values.
//
//     node golden.mjs SOURCES TYPES VECTORS [EVERY]
//
// SOURCES: the package's src (or dist) folder. TYPES: the types of all fields, from the model. VECTORS: the
// folder of the golden vectors. EVERY: take one row in so many. Prints a JSON object: how many
// rows of each file agreed, and up to 20 that did not.

import assert from "node:assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const [sources, typesFile, vectors, every = "1"] = process.argv.slice(2);
const end = readdirSync(sources).includes("index.ts") ? "ts" : "js";
const at = (path) => pathToFileURL(join(sources, `${path}.${end}`)).href;
const index = await import(at("index"));
const TYPES = JSON.parse(readFileSync(typesFile, "utf8"));
const codecs = {};
for (const { name } of index.MESSAGES) {
  codecs[name] = await index.load(name);
}

// -- rows and their values

const exact = (_key, value, { source }) =>
  typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? BigInt(source) : value;

function rows(file) {
  const text = gunzipSync(readFileSync(join(vectors, `${file}.jsonl.gz`))).toString();
  return text
    .split("\n")
    .filter((line, k) => line && k % Number(every) === 0)
    .map((line) => line.replaceAll(/:\s*(NaN|-?Infinity)/g, ':"$1"'))
    .map((line) => (/\d{16}/.test(line) ? JSON.parse(line, exact) : JSON.parse(line)));
}

const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (data) => Buffer.from(data.buffer, data.byteOffset, data.length).toString("hex");
const CONVERT = {
  int64: BigInt,
  float64: Number,
  bytes,
  records: bytes,
  uuid: (text) => Buffer.from(text.replaceAll("-", ""), "hex").toString("base64url"),
};

function value(types, codec, type, given) {
  if (given === null) {
    return null;
  }
  if (type.startsWith("[]")) {
    return given.map((one) => value(types, codec, type.slice(2), one));
  }
  return types[type] === undefined ? (CONVERT[type] ?? ((same) => same))(given) : object(types, codec, type, given);
}

/** Builds a struct of the values of a row; what its version lacks has its default. */
function object(types, codec, struct, given) {
  const init = {};
  for (const [name, one] of Object.entries(given)) {
    if (name === "_tags") {
      init.unknownTags = one.map(([tag, data]) => ({ tag, data: bytes(data) }));
    } else {
      const [property, type] = types[struct][name[0].toLowerCase() + name.slice(1)];
      init[property] = value(types, codec, type, one);
    }
  }
  return struct === types[""] ? codec.create(init) : codec[`create${struct}`](init);
}

function message(row) {
  const types = TYPES[row.message];
  return object(types, codecs[row.message], types[""], row.json);
}

// -- checks

function both({ decode, encode }, row, data) {
  const wanted = message(row);
  assert.deepStrictEqual(decode(data, row.version), wanted);
  assert.strictEqual(hex(encode(wanted, row.version)), hex(data));
}

function refused(row, reason, path) {
  try {
    codecs[row.message].decode(bytes(row.hex), row.version);
  } catch (error) {
    assert(error instanceof index.DecodeError, error);
    assert.match(error.message, /^\w+[.:].* at byte \d+$/);
    assert(error.message.startsWith(`${error.path}: ${error.reason}`));
    assert(error.offset >= 0 && error.offset <= row.hex.length / 2, String(error.offset));
    if (reason) assert.match(error.reason, reason);
    if (path) assert.strictEqual(error.path, path);
    return;
  }
  assert.fail("was accepted");
}

const path = ({ message, where }) =>
  `${message}.${where.split(".").map((part) => part[0].toLowerCase() + part.slice(1)).join(".")}`.replaceAll(/\.(\d+)/g, "[$1]");

const REASONS = { truncated: /./, "trailing-byte": /after the last field/, "null-in-non-nullable": /null/ };
/** Kafka reads these, we do not. */
const STRICTER = { "invalid UTF-8 in string": /UTF-8/ };
/** Read, and not written back as Kafka's writer would. */
const UNWRITABLE = { "same unknown tag twice": /tag 100 twice/ };
const PREFIX = { metadata: 3 };

const CHECKS = {
  messages: (row) => both(codecs[row.message], row, bytes(row.hex)),
  log_records: (row) => both(codecs[row.message], row, bytes(row.hex).subarray(PREFIX[row.framing] ?? 2)),
  frames(row) {
    const codec = codecs[row.message];
    const frame = bytes(row.hex);
    const { CorrelationId: correlationId, ClientId: clientId, _tags = [] } = row.header;
    const unknownTags = _tags.length ? _tags.map(([tag, data]) => ({ tag, data: bytes(data) })) : null;
    const wanted = message(row);
    const is = row.type;
    const version = is === "request" ? index.requestHeaderVersion : index.responseHeaderVersion;
    assert.strictEqual(version(row.api_key, row.version), row.header_version);
    const decoded = is === "request" ? index.decodeRequest(codec, frame) : index.decodeResponse(codec, frame, row.version);
    assert.deepStrictEqual(decoded.message, wanted);
    assert.strictEqual(decoded.header.correlationId, correlationId);
    assert.deepStrictEqual(decoded.header.unknownTags, unknownTags);
    if (is === "request") {
      assert.strictEqual(decoded.header.clientId, clientId ?? null);
      assert.strictEqual(decoded.header.apiKey, row.api_key);
      assert.strictEqual(decoded.header.apiVersion, row.version);
    }
    const encode = is === "request" ? index.encodeRequest : index.encodeResponse;
    assert.strictEqual(hex(encode(codec, wanted, row.version, { correlationId, clientId, unknownTags })), row.hex);
  },
  negatives: (row) => refused(row, REASONS[row.kind], row.kind === "null-in-non-nullable" && path(row)),
  quirks(row) {
    if (row.expect === "error" || STRICTER[row.where]) {
      refused(row, STRICTER[row.where]);
      return;
    }
    const codec = codecs[row.message];
    const read = codec.decode(bytes(row.hex), row.version);
    if (UNWRITABLE[row.where]) {
      assert.throws(() => codec.encode(read, row.version), UNWRITABLE[row.where]);
      return;
    }
    assert.deepStrictEqual(read, message(row));
    assert.strictEqual(hex(codec.encode(read, row.version)), row.reencoded);
  },
};

const agreed = {};
const wrong = [];
for (const [file, check] of Object.entries(CHECKS)) {
  agreed[file] = 0;
  for (const row of rows(file)) {
    try {
      check(row);
      agreed[file]++;
    } catch (error) {
      wrong.push(`${file}: ${row.message} v${row.version} ${row.kind ?? ""} ${row.where ?? ""}: ${error.stack}`);
    }
  }
}
console.log(JSON.stringify({ agreed, wrong: wrong.length, shown: wrong.slice(0, 20) }));
