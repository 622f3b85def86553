// kafkajs, told by its arguments what to do; says what came of it by lines of JSON.
//
//     produce {brokers, topic, values, acks, codec, idempotent, sasl}  -> {places}
//     member  {brokers, topic, group, reset, sasl}                     -> {seen} ... until stdin ends
//     steer   {brokers, topic, group}                                  -> {write}, {read} ...
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
  logLevel: logLevel.NOTHING,
  retry: { retries: asked.sasl ? 0 : 8, initialRetryTime: 50 },
});
const input = readline.createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();

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

function consumer() {
  return kafka.consumer({
    groupId: asked.group,
    sessionTimeout: 6000,
    heartbeatInterval: 100,
    rebalanceTimeout: 20000,
    maxWaitTimeInMs: 100,
    partitionAssigners: [PartitionAssigners.roundRobin],
  });
}

async function member() {
  const it = consumer();
  await it.connect();
  await it.subscribe({ topic: asked.topic, fromBeginning: asked.reset === "earliest" });
  await it.run({
    eachMessage: async ({ topic, partition, message }) => {
      const value = message.value === null ? null : message.value.toString();
      say({ seen: [topic, partition, Number(message.offset), String(message.key), value] });
    },
  });
  for await (const _ of input) ; // until stdin ends
  await it.stop();
  await it.disconnect();
}

// Reads with one partition paused, goes back, goes on with the other.
async function steer() {
  const it = consumer();
  const topic = asked.topic;
  let read = [];
  let wanted = null;
  const until = (count) => new Promise((done) => { wanted = { count, done }; check(); });
  const check = () => {
    if (wanted && read.length >= wanted.count) {
      say({ read });
      read = [];
      const { done } = wanted;
      wanted = null;
      done();
    }
  };
  await it.connect();
  await it.subscribe({ topic, fromBeginning: true });
  const joined = new Promise((done) => it.on(it.events.GROUP_JOIN, done));
  await it.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      read.push([partition, Number(message.offset)]);
      check();
    },
  });
  await joined;
  it.pause([{ topic, partitions: [1] }]);
  say({ write: true });
  await lines.next();
  await until(10);
  it.seek({ topic, partition: 0, offset: "7" });
  await until(3);
  it.resume([{ topic, partitions: [1] }]);
  await until(10);
  await it.disconnect();
}

const done = { produce, member, steer }[what]();
done.then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error.name}: ${error.message}\n`);
    process.exit(1);
  },
);
