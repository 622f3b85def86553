// Decodes and encodes varied messages with a generated package, kafkajs and @platformatic/kafka.
//
//     node codecs.mjs SOURCES ROUNDS MESSAGES [NODE_MODULES]
//
// Contenders take turns; each gets CPU time (all threads, so garbage collection too) per message.
// Responses are decoded and requests encoded, as a client does, in versions that a peer has. Fetch
// responses are without records and Produce requests left out: the peers' codecs of these also read
// and write the records. Prints lines of JSON: case, contender, microseconds a message of each round.

import assert from "node:assert";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [sources, rounds, messages, modules] = process.argv.slice(2);
const end = readdirSync(sources).includes("index.ts") ? "ts" : "js";
const message = (name) => import(pathToFileURL(join(sources, "messages", `${name}.${end}`)).href);
const OURS = "generated";

// -- varied values, the same ones in each run

let state = 11;
const random = (below) => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
};
const text = (least, most) =>
  Array.from({ length: least + random(most - least) }, () => "abcdefghijklmnopqrstuvwxyz-.0123456789"[random(38)]).join("");
const many = (least, most, make) => Array.from({ length: least + random(most - least + 1) }, (_, k) => make(k));
const offset = () => BigInt(random(2 ** 31)) * BigInt(1 + random(1000));
const uuid = () => Buffer.from(Array.from({ length: 16 }, () => random(256))).toString("base64url");
const hex = (id) => Buffer.from(id, "base64url").toString("hex").replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");

const fetchRequest = await message("fetch-request");
const fetchResponse = await message("fetch-response");
const metadataRequest = await message("metadata-request");
const metadataResponse = await message("metadata-response");
const produceResponse = await message("produce-response");

const MAKE = {
  fetchRequest: (version) =>
    fetchRequest.create({
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 1 << 20,
      isolationLevel: random(2),
      topics: many(1, 6, () =>
        fetchRequest.createFetchTopic({
          ...(version > 12 ? { topicId: uuid() } : { topic: text(5, 30) }),
          partitions: many(1, 12, (partition) =>
            fetchRequest.createFetchPartition({
              partition,
              currentLeaderEpoch: random(100),
              fetchOffset: offset(),
              partitionMaxBytes: 1 << 20,
            }),
          ),
        }),
      ),
    }),
  fetchResponse: (version) =>
    fetchResponse.create({
      sessionId: random(2 ** 31),
      responses: many(1, 6, () =>
        fetchResponse.createFetchableTopicResponse({
          ...(version > 12 ? { topicId: uuid() } : { topic: text(5, 30) }),
          partitions: many(1, 12, (partitionIndex) =>
            fetchResponse.createPartitionData({
              partitionIndex,
              highWatermark: offset(),
              lastStableOffset: offset(),
              logStartOffset: offset(),
              abortedTransactions: many(0, random(4) ? 0 : 3, () =>
                fetchResponse.createAbortedTransaction({ producerId: offset(), firstOffset: offset() }),
              ),
              records: new Uint8Array(0),
            }),
          ),
        }),
      ),
    }),
  produceResponse: () =>
    produceResponse.create({
      responses: many(1, 6, () =>
        produceResponse.createTopicProduceResponse({
          name: text(5, 30),
          partitionResponses: many(1, 12, (index) =>
            produceResponse.createPartitionProduceResponse({ index, baseOffset: offset(), logStartOffset: offset() }),
          ),
        }),
      ),
    }),
  metadataResponse: (version) =>
    metadataResponse.create({
      brokers: many(1, 9, (nodeId) =>
        metadataResponse.createMetadataResponseBroker({
          nodeId,
          host: text(8, 40),
          port: 9092,
          rack: random(2) ? text(5, 12) : null,
        }),
      ),
      clusterId: text(22, 23),
      controllerId: random(9),
      topics: many(1, 12, () =>
        metadataResponse.createMetadataResponseTopic({
          name: text(5, 30),
          ...(version > 9 ? { topicId: uuid() } : {}),
          partitions: many(1, 12, (partitionIndex) =>
            metadataResponse.createMetadataResponsePartition({
              partitionIndex,
              leaderId: random(9),
              ...(version > 6 ? { leaderEpoch: random(100) } : {}),
              replicaNodes: many(1, 3, () => random(9)),
              isrNodes: many(1, 3, () => random(9)),
            }),
          ),
        }),
      ),
    }),
  metadataRequest: () =>
    metadataRequest.create({
      topics: many(1, 12, () => metadataRequest.createMetadataRequestTopic({ name: text(5, 30) })),
      allowAutoTopicCreation: true,
    }),
};

// -- contenders

const CODECS = { fetchRequest, fetchResponse, produceResponse, metadataResponse, metadataRequest };
const buffer = (data) => Buffer.from(data.buffer, data.byteOffset, data.length);

/** A case: each contender has its inputs, what it does with one, and how to compare the results. */
function decoding(name, version, peer, decode, count) {
  const made = Array.from({ length: Number(messages) }, () => MAKE[name](version));
  const inputs = made.map((one) => buffer(CODECS[name].encode(one, version)));
  const codec = CODECS[name];
  return {
    title: `decode ${codec.name} v${version}`,
    contenders: { [OURS]: [inputs, (data) => codec.decode(data, version)], [peer]: [inputs, decode] },
    same: async (k) => assert.deepStrictEqual(count(await decode(inputs[k])), count(made[k])),
  };
}

function encoding(name, version, peer, prepare, encode) {
  const made = Array.from({ length: Number(messages) }, () => MAKE[name](version));
  const codec = CODECS[name];
  const theirs = made.map(prepare);
  return {
    title: `encode ${codec.name} v${version}`,
    contenders: { [OURS]: [made, (one) => codec.encode(one, version)], [peer]: [theirs, encode] },
    same: async (k) => {
      const bytes = await encode(theirs[k]);
      assert(bytes.equals(buffer(codec.encode(made[k], version))), `${peer} encodes ${codec.name} to other bytes`);
    },
  };
}

const topicsOf = (one) => one.topicMetadata ?? one.topics ?? one.responses;
const partitionsOf = (one) => one.partitionMetadata ?? one.partitions ?? one.partitionResponses;
/** The shape of a response, and a number from each of its partitions. */
const shape = (one) =>
  topicsOf(one).map((topic) =>
    partitionsOf(topic).map((each) => [Number(each.highWatermark ?? each.baseOffset ?? each.leader ?? each.leaderId)]),
  );

function kafkajs() {
  const require = createRequire(join(modules, "kafkajs", "package.json"));
  const load = (path) => require(`./src/protocol/requests/${path}`);
  const response = (path) => load(`${path}/response`).decode;
  const fetch = load("fetch/v11/request");
  const metadata = load("metadata/v6/request");
  return [
    decoding("fetchResponse", 11, "kafkajs", response("fetch/v11"), shape),
    decoding("produceResponse", 7, "kafkajs", response("produce/v7"), shape),
    decoding("metadataResponse", 6, "kafkajs", response("metadata/v6"), shape),
    encoding("fetchRequest", 11, "kafkajs", theirFetch, async (one) => (await fetch(one).encode()).buffer),
    encoding("metadataRequest", 6, "kafkajs", (one) => ({ topics: one.topics.map((topic) => topic.name) }), async (one) => (await metadata(one).encode()).buffer),
  ];
}

function theirFetch(one) {
  return {
    ...one,
    maxWaitTime: one.maxWaitMs,
    topics: one.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map((each) => ({ ...each, maxBytes: each.partitionMaxBytes })),
    })),
  };
}

async function platformatic() {
  const at = (path) => import(pathToFileURL(join(modules, "@platformatic", "kafka", "dist", path)).href);
  const { Reader } = await at("protocol/reader.js");
  const response = async (path, key, version) => {
    const { parseResponse } = await at(`apis/${path}-v${version}.js`);
    return (data) => parseResponse(1, key, version, Reader.from(data));
  };
  const fetch = (await at("apis/consumer/fetch-v17.js")).createRequest;
  const metadata = (await at("apis/metadata/metadata-v12.js")).createRequest;
  const written = (writer) => writer.buffer;
  return [
    decoding("fetchResponse", 17, "platformatic", await response("consumer/fetch", 1, 17), shape),
    decoding("produceResponse", 11, "platformatic", await response("producer/produce", 0, 11), shape),
    decoding("metadataResponse", 12, "platformatic", await response("metadata/metadata", 3, 12), shape),
    encoding(
      "fetchRequest",
      17,
      "platformatic",
      (one) => ({
        ...one,
        topics: one.topics.map((topic) => ({ ...topic, topicId: hex(topic.topicId) })),
      }),
      (one) =>
        written(fetch(one.maxWaitMs, one.minBytes, one.maxBytes, one.isolationLevel, one.sessionId, one.sessionEpoch, one.topics, [], "")),
    ),
    encoding("metadataRequest", 12, "platformatic", (one) => one.topics.map((topic) => topic.name), (one) => written(metadata(one, true, false))),
  ];
}

function alone() {
  const none = (one) => one;
  return ["fetchResponse", "produceResponse", "metadataResponse"].map((name) => {
    const made = decoding(name, CODECS[name].lastVersion - 1, OURS, none, none);
    return { ...made, same: async () => {}, contenders: { [OURS]: made.contenders[OURS] } };
  });
}

// -- rounds

/** Takes all inputs until about 50 ms have passed; microseconds of CPU time for each. */
async function loop([inputs, call]) {
  const from = process.cpuUsage();
  const start = performance.now();
  let done = 0;
  do {
    for (const input of inputs) {
      const made = call(input);
      if (made instanceof Promise) {
        await made;
      }
    }
    done += inputs.length;
  } while (performance.now() - start < 50);
  const { user, system } = process.cpuUsage(from);
  return (user + system) / done;
}

const cases = modules === undefined ? alone() : [...kafkajs(), ...(await platformatic())];
for (const { title, contenders, same } of cases) {
  for (let k = 0; k < Math.min(20, Number(messages)); k++) {
    await same(k);
  }
  const names = Object.keys(contenders);
  const taken = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -2; round < Number(rounds); round++) {
    for (const name of round % 2 ? names : names.toReversed()) {
      const each = await loop(contenders[name]);
      if (round >= 0) {
        taken[name].push(each);
      }
    }
  }
  for (const name of names) {
    console.log(JSON.stringify({ case: title, contender: name, values: taken[name] }));
  }
}
