// Runs kafkajs as its arguments request; writes the results to stdout as lines of JSON.
//
//     produce {brokers, topic, values, acks, codec, idempotent, sasl}  -> {places}
//     read    {brokers, topic, group, reset, autoCommitMs, sasl}       -> lines as in process_reader.py
const { Kafka, logLevel, CompressionTypes, Partitioners, PartitionAssigners } = require("kafkajs");
const readline = require("readline");

const [, , mode, argument] = process.argv;
const request = JSON.parse(argument);
const write = (message) => process.stdout.write(JSON.stringify(message) + "\n");
const kafka = new Kafka({
  clientId: "kafkajs",
  brokers: request.brokers,
  sasl: request.sasl || undefined,
  ssl: false,
  connectionTimeout: 30000,
  logLevel: logLevel.NOTHING,
  retry: { retries: request.sasl ? 0 : 8, initialRetryTime: 50 },
});
const input = readline.createInterface({ input: process.stdin });

async function produce() {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: request.idempotent,
    maxInFlightRequests: request.idempotent ? 1 : undefined,
  });
  await producer.connect();
  const places = [];
  for (const [at, value] of request.values.entries()) {
    const sent = await producer.send({
      topic: request.topic,
      acks: request.acks,
      compression: request.codec === "gzip" ? CompressionTypes.GZIP : CompressionTypes.None,
      messages: [{ key: `k${at}`, value }],
    });
    places.push(request.acks === 0 ? [-1, -1] : [sent[0].partition, Number(sent[0].baseOffset)]);
  }
  await producer.disconnect();
  write({ places });
}

const positions = new Map(); // partition -> the next offset to read

function committed(topic, partition, offset) {
  return [{ topic, partition, offset: String(offset) }];
}

async function read() {
  const topic = request.topic;
  const it = kafka.consumer({
    groupId: request.group,
    sessionTimeout: 45000,
    heartbeatInterval: 100,
    rebalanceTimeout: 60000,
    maxWaitTimeInMs: 100,
    partitionAssigners: [PartitionAssigners.roundRobin],
  });
  let held = [];
  it.on(it.events.GROUP_JOIN, ({ payload }) => {
    if (held.length) write({ revoked: held });
    held = (payload.memberAssignment[topic] || []).map((partition) => [topic, partition]);
    write({ assigned: held });
  });
  await it.connect();
  await it.subscribe({ topic, fromBeginning: request.reset === "earliest" });
  await it.run({
    autoCommit: request.autoCommitMs !== null,
    autoCommitInterval: request.autoCommitMs,
    eachMessage: async ({ partition, message }) => {
      const value = message.value === null ? null : message.value.toString();
      positions.set(partition, Number(message.offset) + 1);
      write({ seen: [topic, partition, Number(message.offset), String(message.key), value] });
    },
  });
  const commands = {
    pause: (partition) => it.pause([{ topic, partitions: [partition] }]),
    resume: (partition) => it.resume([{ topic, partitions: [partition] }]),
    seek: (partition, offset) => it.seek({ topic, partition, offset: String(offset) }),
    commit: (offset) => it.commitOffsets(committed(topic, 0, offset ?? positions.get(0))),
    begin: (offset) => {
      it.commitOffsets(committed(topic, 0, offset)).then(() => write({ committed: offset }));
    },
  };
  for await (const line of input) {
    const [command, ...numbers] = line.split(" ");
    await commands[command](...numbers.map(Number));
    write({ done: command });
  }
  await it.stop();
  await it.disconnect();
}

const done = { produce, read }[mode]();
done.then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.name}: ${error.message}\n`);
    process.exit(1);
  },
);
