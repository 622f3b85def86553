// A user of the built package: what its types allow, and what they do not.

import { API_KEYS, decodeRequest, encodeRequest, load } from "kafka-messages";
import type { Codec, FetchRequest, MessageInfo } from "kafka-messages";
import * as fetchRequest from "kafka-messages/messages/fetch-request";
import type { FetchTopic } from "kafka-messages/messages/fetch-request";

declare const console: { log(...values: unknown[]): void };

const topic: FetchTopic = fetchRequest.createFetchTopic({ topic: "orders" });
const message: FetchRequest = fetchRequest.create({ maxWaitMs: 500, topics: [topic] });
const codec: Codec<FetchRequest> = fetchRequest;
const frame = encodeRequest(codec, message, 12, { correlationId: 1, clientId: "me" });
const { header, message: read } = decodeRequest(codec, frame);
const offset: bigint | undefined = read.topics[0]?.partitions[0]?.fetchOffset;
const loaded = await load("FetchResponse");
const records: Uint8Array | null = loaded.createPartitionData().records;
const key: 1 = API_KEYS.Fetch;
const info = undefined as MessageInfo | undefined;

export function wrong(): void {
  // @ts-expect-error: int64 is a bigint
  fetchRequest.createFetchPartition({ fetchOffset: 1 });
  // @ts-expect-error: not nullable
  fetchRequest.create({ rackId: null });
  // @ts-expect-error: no such field
  fetchRequest.create({ maxWait: 1 });
  // @ts-expect-error: no such message
  void load("FetchRequests");
  // @ts-expect-error: another message
  encodeRequest(codec, loaded.create(), 12, { correlationId: 1 });
  // @ts-expect-error: a correlation id is needed
  encodeRequest(codec, message, 12, {});
}

void [offset, records, key, info];
console.log(header.clientId, loaded.lastVersion);
