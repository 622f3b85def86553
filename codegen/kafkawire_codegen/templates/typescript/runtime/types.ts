/** What messages are made of, beside the types of the language. */

import type { Reader } from "./reader.ts";
import type { Writer } from "./writer.ts";

/** A tagged field that the schema does not know: kept, and written back. */
export interface UnknownTag {
  tag: number;
  data: Uint8Array;
}

/** What each module of a message exports: pass the module itself. */
export interface Codec<M> {
  readonly name: string;
  readonly type: string;
  readonly apiKey: number | null;
  readonly firstVersion: number;
  readonly lastVersion: number;
  /** The version of the header of a request or response; null for a message without one. */
  headerVersion(version: number): number | null;
  decode(data: Uint8Array, version: number): M;
  encode(message: M, version: number): Uint8Array;
  /** Reads a message where a reader stands. */
  read(r: Reader, version: number): M;
  /** Writes a message where a writer stands. */
  write(w: Writer, message: M, version: number): void;
}

/** The value of a bytes field without bytes. */
export const NO_BYTES: Uint8Array = new Uint8Array(0);

/** The uuid of none: 16 zero bytes. */
export const ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA";

/** The highest tag: 2147483647 is reserved (KIP-482). */
export const MAX_TAG = 0x7ffffffe;

/** The longest string; compact lengths beyond an int16 are errors, as in Kafka. */
export const MAX_STRING = 0x7fff;
