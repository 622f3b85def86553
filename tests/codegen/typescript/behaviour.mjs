// What the package does where the golden vectors do not reach. Runs in its folder of sources.

import assert from "node:assert";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const at = (path) => pathToFileURL(join(process.cwd(), `${path}.ts`)).href;
const index = await import(at("index"));
const message = (name) => import(at(`messages/${name}`));
const fetchRequest = await message("fetch-request");
const fetchResponse = await message("fetch-response");
const metadataRequest = await message("metadata-request");
const apiVersionsRequest = await message("api-versions-request");
const apiVersionsResponse = await message("api-versions-response");
const writer = await import(at("runtime/writer"));
const heartbeat = await message("heartbeat-request");
const bytes = (hex) => new Uint8Array(Buffer.from(hex, "hex"));
const hex = (data) => Buffer.from(data).toString("hex");

function refused(call, message) {
  try {
    call();
  } catch (error) {
    assert(error instanceof index.CodecError, error);
    assert.strictEqual(error.message, message);
    assert(error.stack.startsWith(`${error.name}: ${message}`), error.stack);
    return error;
  }
  return assert.fail("was accepted");
}

const partition = (more) => fetchResponse.createPartitionData({ records: new Uint8Array(3), ...more });
const response = (...partitions) =>
  fetchResponse.create({
    responses: [fetchResponse.createFetchableTopicResponse({ topic: "t", partitions })],
  });

test("an error of decoding has a path and an offset", () => {
  const data = fetchResponse.encode(response(partition(), partition()), 11);
  const error = refused(
    () => fetchResponse.decode(data.subarray(0, -1), 11),
    `FetchResponse.responses[0].partitions[1].records: 3 bytes wanted, 2 left at byte ${data.length - 3}`,
  );
  assert.strictEqual(error.name, "DecodeError");
  assert.strictEqual(error.path, "FetchResponse.responses[0].partitions[1].records");
  assert.strictEqual(error.offset, data.length - 3);
});

test("an error of encoding has a path", () => {
  const wrong = response(partition(), partition({ highWatermark: 5 }));
  const error = refused(
    () => fetchResponse.encode(wrong, 11),
    "FetchResponse.responses[0].partitions[1].highWatermark: expected an int64 as a bigint, got 5",
  );
  assert.strictEqual(error.name, "EncodeError");
});

test("values out of range and of other types are refused", () => {
  const cases = [
    [{ maxWaitMs: 2 ** 31 }, "maxWaitMs: expected an int32, got 2147483648"],
    [{ maxWaitMs: 1.5 }, "maxWaitMs: expected an int32, got 1.5"],
    [{ maxWaitMs: NaN }, "maxWaitMs: expected an int32, got NaN"],
    [{ maxWaitMs: "1" }, 'maxWaitMs: expected an int32, got "1"'],
    [{ maxWaitMs: null }, "maxWaitMs: null, but not nullable"],
    [{ isolationLevel: 128 }, "isolationLevel: expected an int8, got 128"],
    [{ rackId: null }, "rackId: null, but not nullable"],
    [{ rackId: 7n }, "rackId: expected a string, got 7n"],
    [{ rackId: "\ud800" }, "rackId: a string with half a surrogate pair: it has no UTF-8"],
    [{ rackId: "x".repeat(40000) }, "rackId: a string of 40000 characters; 32767 bytes are the most"],
    [{ rackId: "\u20ac".repeat(20000) }, "rackId: a string of 60000 bytes; 32767 is the most"],
    [{ topics: {} }, "topics: expected an array, got a value of type object"],
    [{ topics: [null] }, "topics[0]: null, but not nullable"],
    [{ topics: [5] }, "topics[0]: expected an object, got 5"],
    [{ topics: [fetchRequest.createFetchTopic({ partitions: [{}] })] }, "topics[0].partitions[0].partition: expected an int32, got undefined"],
    [{ topics: [fetchRequest.createFetchTopic({ topicId: "short" })] }, 'topics[0].topicId: expected a uuid of 22 characters of URL-safe base64, got "short"'],
    [{ unknownTags: [{ tag: -1, data: bytes("") }] }, "unknownTags: expected a tag from 0 to 2147483646, got -1"],
    [{ unknownTags: [{ tag: 9, data: "ab" }] }, 'unknownTags: expected a Uint8Array, got "ab"'],
    [{ unknownTags: [{ tag: 9, data: bytes("") }, { tag: 9, data: bytes("") }] }, "unknownTags: tag 9 twice"],
    [{ clusterId: "c", unknownTags: [{ tag: 0, data: bytes("") }] }, "unknownTags: tag 0 twice"],
  ];
  for (const [init, reason] of cases) {
    refused(() => fetchRequest.encode(fetchRequest.create(init), 17), `FetchRequest.${reason}`);
  }
  refused(() => fetchRequest.encode(null, 17), "FetchRequest: null, but not nullable");
  const wide = fetchRequest.createFetchPartition({ fetchOffset: 2n ** 63n });
  refused(
    () => fetchRequest.encode(fetchRequest.create({ topics: [fetchRequest.createFetchTopic({ partitions: [wide] })] }), 17),
    "FetchRequest.topics[0].partitions[0].fetchOffset: expected an int64 as a bigint, got 9223372036854775808n",
  );
});

test("a set field that the version lacks is refused, unless it is ignorable or undefined", () => {
  const set = heartbeat.create({ groupInstanceId: "x" });
  refused(() => heartbeat.encode(set, 2), "HeartbeatRequest.groupInstanceId: set, but not in version 2");
  const { groupInstanceId: _, ...without } = heartbeat.create();
  assert.deepStrictEqual(heartbeat.decode(heartbeat.encode(without, 2), 2), heartbeat.create());
  const tagged = fetchRequest.create({ unknownTags: [{ tag: 9, data: bytes("00") }] });
  refused(() => fetchRequest.encode(tagged, 4), "FetchRequest.unknownTags: set, but not in version 4");
  assert(fetchRequest.encode(fetchRequest.create({ rackId: "r" }), 4).length > 0); // ignorable
});

test("unknown versions are refused", () => {
  for (const version of [-1, 99, 1.5, NaN, "3", undefined]) {
    const message = `HeartbeatRequest: version ${version} is unknown; it has versions 0 to 4`;
    assert.strictEqual(refused(() => heartbeat.decode(bytes(""), version), message).name, "UnsupportedVersionError");
    refused(() => heartbeat.encode(heartbeat.create(), version), message);
    refused(() => heartbeat.headerVersion(version), message);
  }
});

test("a writer is usable after an error, and inside another", () => {
  assert.throws(() => heartbeat.encode(heartbeat.create({ generationId: "x" }), 4));
  const wanted = hex(heartbeat.encode(heartbeat.create({ groupId: "g" }), 4));
  const nosy = { ...heartbeat.create({ groupId: "g" }) };
  Object.defineProperty(nosy, "memberId", { get: () => (heartbeat.encode(heartbeat.create(), 0), "") });
  assert.strictEqual(hex(heartbeat.encode(nosy, 4)), wanted);
  class Mine extends Error {}
  Object.defineProperty(nosy, "memberId", { get: () => { throw new Mine(); } });
  assert.throws(() => heartbeat.encode(nosy, 4), Mine);
});

test("results are not shared, and inputs may be any view", () => {
  const one = heartbeat.encode(heartbeat.create({ groupId: "one" }), 4);
  const before = hex(one);
  heartbeat.encode(heartbeat.create({ groupId: "another" }), 4);
  assert.strictEqual(hex(one), before);
  const inside = Buffer.concat([Buffer.from("xx"), one, Buffer.from("yy")]).subarray(2, 2 + one.length);
  assert.strictEqual(heartbeat.decode(inside, 4).groupId, "one");
  assert.throws(() => heartbeat.decode("text", 4), TypeError);
  const records = new Uint8Array(300000).fill(7);
  const data = fetchResponse.encode(response(partition({ records }), partition({ records })), 17);
  const [first, second] = fetchResponse.decode(data, 17).responses[0].partitions;
  assert.deepStrictEqual([first.records, second.records], [records, records]);
  assert.strictEqual(first.records.buffer, data.buffer); // a view
  assert(data.buffer.byteLength < data.length * 1.4);
  const kept = hex(data);
  fetchResponse.encode(response(partition({ records: new Uint8Array(300000) })), 17);
  assert.strictEqual(hex(data), kept);
  // what was needed once is not kept: 5 MB, of which 3 MB are copied out, then a small message
  const { openWriter, closeWriter } = writer;
  fetchResponse.encode(response(partition({ records: new Uint8Array(2 << 20) }), partition({ records: new Uint8Array(1 << 20) })), 17);
  const w = openWriter();
  assert(w.capacity <= 1 << 20);
  closeWriter(w);
  assert.strictEqual(openWriter(), w);
});

test("hostile counts allocate nothing", () => {
  const counts = ["7fffffff", "10000000", "00ffffff"];
  for (const count of counts) {
    const before = process.memoryUsage().heapUsed;
    refused(
      () => metadataRequest.decode(bytes(count), 1),
      `MetadataRequest.topics: an array of ${parseInt(count, 16)} elements, 0 bytes left at byte 0`,
    );
    assert(process.memoryUsage().heapUsed - before < 1 << 20);
  }
  // as many as there are bytes, but each takes several
  refused(
    () => fetchResponse.decode(Buffer.concat([bytes("0000000000000000000000000001 0001 61 00001000".replaceAll(" ", "")), new Uint8Array(4096)]), 11),
    "FetchResponse.responses[0].partitions: an array of 4096 elements, 4096 bytes left at byte 17",
  );
  const error = refused(
    () => apiVersionsRequest.decode(bytes("0101ffffffff0f"), 3),
    "ApiVersionsRequest.unknownTags: 4294967295 tagged fields, 0 bytes left at byte 2",
  );
  assert.strictEqual(error.offset, 2);
});

test("a known tagged field takes as many bytes as it says", () => {
  const data = fetchRequest.encode(fetchRequest.create({ clusterId: "c" }), 17);
  const at = data.length - 3; // tag 0, size, "c"
  assert.strictEqual(data[at], 2);
  data[at] = 3;
  refused(() => fetchRequest.decode(Buffer.concat([data, bytes("00")]), 17), `FetchRequest.clusterId: a tagged field of 3 bytes takes 2 at byte ${at + 1}`);
});

test("a tag that other versions have is refused", () => {
  const made = fetchRequest.create({ replicaState: fetchRequest.createReplicaState({ replicaId: 1 }) });
  const data = fetchRequest.encode(made, 15);
  const since15 = fetchRequest.encode(fetchRequest.create(), 15).length - 1;
  const before = Buffer.concat([fetchRequest.encode(fetchRequest.create(), 14).subarray(0, -1), data.subarray(since15)]);
  refused(() => fetchRequest.decode(before, 14), `FetchRequest.unknownTags: tag 1 does not exist in this version at byte ${before.length - 13}`);
  refused(() => fetchRequest.encode(made, 14), "FetchRequest.replicaState: set, but not in version 14");
});

test("unknown tagged fields are kept, in order with known ones, also large and many", () => {
  const tags = Array.from({ length: 300 }, (_, k) => ({ tag: 700 - 2 * k, data: new Uint8Array(k) }));
  const made = fetchRequest.create({ clusterId: "c".repeat(200), unknownTags: tags });
  const data = fetchRequest.encode(made, 17);
  const read = fetchRequest.decode(data, 17);
  assert.strictEqual(read.clusterId, made.clusterId);
  assert.deepStrictEqual(read.unknownTags, tags.toReversed());
  assert.strictEqual(hex(fetchRequest.encode(read, 17)), hex(data));
});

test("text of any length and script", () => {
  for (const one of ["", "a", "\ufeffb", "\ufffd", "\u0000", "żó", "\u{1f600}"]) {
    for (const n of [0, 1, 5, 20, 21, 24, 25, 42, 43, 126, 127, 128, 1000, 5000]) {
      const groupId = one.repeat(n) + "x".repeat(n % 3); // at most 20002 bytes
      for (const version of [0, 4]) {
        const data = heartbeat.encode(heartbeat.create({ groupId }), version);
        assert(Buffer.from(data).includes(Buffer.from(groupId)));
        assert.strictEqual(heartbeat.decode(data, version).groupId, groupId);
      }
    }
  }
  for (const wrong of ["ff", "c328", "eda080", "c0af", "f8"]) {
    for (const padding of [0, 30]) {
      const text = wrong + "61".repeat(padding);
      const size = (text.length / 2).toString(16).padStart(4, "0");
      assert.throws(() => heartbeat.decode(bytes(size + text), 0), /groupId: invalid UTF-8 at byte 2/);
    }
  }
});

test("uuids are Kafka's 22 characters", () => {
  const id = "_-_-AAECAwQFBgcICQoLDA";
  const made = fetchRequest.create({ topics: [fetchRequest.createFetchTopic({ topicId: id })] });
  const data = fetchRequest.encode(made, 17);
  assert.strictEqual(fetchRequest.decode(data, 17).topics[0].topicId, id);
  assert(Buffer.from(data).includes(Buffer.from(id, "base64url")));
  for (const wrong of [`${id}A`, id.slice(1), `${id.slice(0, -1)}B`, `${id.slice(0, -1)}=`, `ż${id.slice(1)}`]) {
    const made = fetchRequest.create({ topics: [fetchRequest.createFetchTopic({ topicId: wrong })] });
    assert.throws(() => fetchRequest.encode(made, 17), /topicId: expected a uuid/);
  }
});

test("defaults are the schema's, and fresh", () => {
  const made = fetchRequest.create();
  assert.strictEqual(made.maxBytes, 0x7fffffff);
  assert.strictEqual(made.sessionEpoch, -1);
  assert.strictEqual(made.clusterId, null);
  assert.strictEqual(fetchRequest.createFetchPartition().logStartOffset, -1n);
  made.topics.push(fetchRequest.createFetchTopic());
  assert.deepStrictEqual(fetchRequest.create().topics, []);
  assert.strictEqual(fetchRequest.create({ clusterId: null, maxBytes: undefined }).maxBytes, 0x7fffffff);
});

test("a message of the newest version shares its shape with one of the oldest", () => {
  for (const version of [0, 17]) {
    const read = fetchResponse.decode(fetchResponse.encode(fetchResponse.create(), version), version);
    assert.deepStrictEqual(Object.keys(read), Object.keys(fetchResponse.create()));
  }
});

test("the registry", async () => {
  assert.strictEqual(index.API_KEYS.Fetch, 1);
  assert.strictEqual(index.requestInfo(1).name, "FetchRequest");
  assert.strictEqual(index.responseInfo(1).lastVersion, fetchResponse.lastVersion);
  assert.strictEqual(index.requestInfo(9999), undefined);
  assert.strictEqual((await index.loadRequest(1)).name, "FetchRequest");
  assert.strictEqual(await index.load("FetchResponse"), fetchResponse);
  await assert.rejects(index.load("toString"), /no message has the name toString/);
  await assert.rejects(index.loadResponse(9999), /no API has the key 9999/);
  assert.throws(() => index.requestHeaderVersion(9999, 0), /no API has the key 9999/);
  assert.strictEqual(index.requestHeaderVersion(7, 0), 0); // ControlledShutdown
  assert.strictEqual(index.responseHeaderVersion(18, 3), 0); // ApiVersions
  for (const { name, type, firstVersion, lastVersion } of index.MESSAGES) {
    const codec = await index.load(name);
    assert.deepStrictEqual([codec.name, codec.type, codec.firstVersion, codec.lastVersion], [name, type, firstVersion, lastVersion]);
  }
});

test("a frame has its errors and its odd response", () => {
  const frame = index.encodeRequest(heartbeat, heartbeat.create(), 4, { correlationId: 7, clientId: "me" });
  assert.deepStrictEqual(index.decodeRequest(heartbeat, frame).header, {
    apiKey: 12, apiVersion: 4, correlationId: 7, clientId: "me", unknownTags: null,
  });
  assert.deepStrictEqual(
    [index.requestStart(frame).apiKey, index.requestStart(frame).correlationId],
    [12, 7],
  );
  refused(() => index.decodeRequest(fetchRequest, frame), "RequestHeader.apiKey: 12 is not the key of FetchRequest at byte 4");
  refused(() => index.decodeRequest(heartbeat, frame.subarray(0, -1)), `RequestHeader.size: a frame of ${frame.length - 4} bytes, ${frame.length - 5} are there at byte 0`);
  refused(() => index.decodeRequest(heartbeat, bytes("0000")), "RequestHeader.size: 4 bytes wanted, 2 left at byte 0");
  refused(() => index.encodeRequest(heartbeat, heartbeat.create(), 4, { correlationId: 2 ** 40 }), "RequestHeader.correlationId: expected an int32, got 1099511627776");
  refused(() => index.encodeRequest(heartbeat, heartbeat.create({ generationId: 0.5 }), 4, { correlationId: 1 }), "HeartbeatRequest.generationId: expected an int32, got 0.5");
  assert.throws(() => index.encodeResponse(heartbeat, heartbeat.create(), 4, { correlationId: 1 }), TypeError);
  const broken = index.encodeRequest(heartbeat, heartbeat.create({ groupId: "g" }), 0, { correlationId: 1 });
  broken[4 + 10 + 1] = 9; // the size of the group's name
  refused(() => index.decodeRequest(heartbeat, broken), "HeartbeatRequest.groupId: 9 bytes wanted, 7 left at byte 16");
  const odd = bytes("00000010 00000009 0023 00000001 0012 0000 0003".replaceAll(" ", ""));
  const read = index.decodeResponse(apiVersionsResponse, odd, 4);
  assert.deepStrictEqual([read.version, read.message.errorCode, read.message.apiKeys.length], [0, 35, 1]);
});

test("a stream is split into frames, however it arrives", () => {
  const frames = Array.from({ length: 20 }, (_, k) =>
    index.encodeRequest(heartbeat, heartbeat.create({ groupId: "g".repeat(k * 7) }), 4, { correlationId: k }));
  const stream = Buffer.concat(frames);
  for (const size of [1, 2, 3, 5, 64, 1000, stream.length]) {
    const splitter = new index.FrameSplitter();
    const found = [];
    for (let k = 0; k < stream.length; k += size) {
      found.push(...splitter.push(stream.subarray(k, k + size)));
    }
    assert.deepStrictEqual(found.map(hex), frames.map(hex));
  }
  const splitter = new index.FrameSplitter(100);
  refused(() => splitter.push(bytes("00000065")), "size: a frame of 101 bytes; 100 is the most at byte 0");
  refused(() => new index.FrameSplitter().push(bytes("80000000")), "size: a frame of -2147483648 bytes; 104857600 is the most at byte 0");
});

test("text without Node's Buffer", () => {
  const script = `delete globalThis.Buffer;
    const { create, decode, encode } = await import(${JSON.stringify(at("messages/heartbeat-request"))});
    for (const groupId of ["", "g", "\u017c", "\ufeff\u017c".repeat(99), "g".repeat(99), "\u{1f600}".repeat(9)]) {
      if (decode(encode(create({ groupId }), 4), 4).groupId !== groupId) throw new Error(groupId);
    }
    const data = encode(create({ groupId: "g".repeat(99) }), 4);
    data[50] = 0xff;
    try { decode(data, 4); } catch (error) { console.log(error.message); }`;
  const printed = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", script]).toString();
  assert.strictEqual(printed.trim(), "HeartbeatRequest.groupId: invalid UTF-8 at byte 1");
});

test("the index imports no message", () => {
  const script = `import { registerHooks } from "node:module";
    const urls = []; registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
    const { load } = await import(${JSON.stringify(at("index"))});
    const before = urls.filter((url) => url.includes("/messages/")).length;
    await load("FetchRequest");
    console.log(before, urls.filter((url) => url.includes("/messages/")).length);`;
  const printed = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", script]).toString();
  assert.strictEqual(printed.trim(), "0 1");
});
