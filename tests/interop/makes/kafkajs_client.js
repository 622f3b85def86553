// kafkajs, told by its arguments what to do; says what came of it by lines of JSON.
//
//     produce {brokers, topic, values, acks, codec, idempotent, sasl}  -> {places}
//     read    {brokers, topic, group, reset, autoCommitMs, sasl}       -> lines as in talking.py
const { Kafka, logLevel, CompressionTypes, Partitioners, PartitionAssigners } = require("kafkajs");
const readline = require("readline");

const [, , what, given] = process.argv;
const asked = JSON.parse(given);
const say = (said) => process.stdout.write(JSON.stringify(said) + "\n");
const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: asked.brokers,
  sasl: asked.sasl || undefined,
  ssl: false,
  connectionTimeout: 30000,
  logLevel: logLevel.NOTHING,
  retry: { retries: asked.sasl ? 0 : 8, initialRetryTime: 50 },
});
const input = readline.createInterface({ input: process.stdin });

async function produce() {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: asked.idempotent,
    maxInFlightRequests: asked.idempotent ? 1 : undefined,
  });
  await producer.connect();
  const places = [];
  for (const [at, value] of asked.values.entries()) {
    const sent = await producer.send({
      topic: asked.topic,
      acks: asked.acks,
      compression: asked.codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None,
      messages: [{ key: `k${at}`, value }],
    });
    places.push(asked.acks === 0 ? [-1, -1] : [sent[0].partition, Number(sent[0].baseOffset)]);
  }
  await producer.disconnect();
  say({ places });
}

const positions = new Map(); // partition -> the next offset to read

function committed(topic, partition, offset) {
  return [{ topic, partition, offset: String(offset) }];
}

async function read() {
  const topic = asked.topic;
  const it = kafka.consumer({
    groupId: asked.group,
    sessionTimeout: 45000,
    heartbeatInterval: 100,
    rebalanceTimeout: 60000,
    maxWaitTimeInMs: 100,
    partitionAssigners: [PartitionAssigners.roundRobin],
  });
  let held = [];
  it.on(it.events.GROUP_JOIN, ({ payload }) => {
    if (held.length) say({ revoked: held });
    held = (payload.memberAssignment[topic] || []).map((partition) => [topic, partition]);
    say({ assigned: held });
  });
  await it.connect();
  await it.subscribe({ topic, fromBeginning: asked.reset === "earliest" });
  await it.run({
    autoCommit: asked.autoCommitMs !== null,
    autoCommitInterval: asked.autoCommitMs,
    eachMessage: async ({ partition, message }) => {
      const value = message.value === null ? null : message.value.toString();
      positions.set(partition, Number(message.offset) + 1);
      say({ seen: [topic, partition, Number(message.offset), String(message.key), value] });
    },
  });
  const told = {
    pause: (partition) => it.pause([{ topic, partitions: [partition] }]),
    resume: (partition) => it.resume([{ topic, partitions: [partition] }]),
    seek: (partition, offset) => it.seek({ topic, partition, offset: String(offset) }),
    commit: (offset) => it.commitOffsets(committed(topic, 0, offset ?? positions.get(0))),
    begin: (offset) => {
      it.commitOffsets(committed(topic, 0, offset)).then(() => say({ committed: offset }));
    },
  };
  for await (const line of input) {
    const [word, ...numbers] = line.split(" ");
    await told[word](...numbers.map(Number));
    say({ done: word });
  }
  await it.stop();
  await it.disconnect();
}

const done = { produce, read }[what]();
done.then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.name}: ${error.message}\n`);
    process.exit(1);
  },
);
