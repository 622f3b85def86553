/**
 * Writes one message.
 *
 * A value that its type does not have is refused, never rounded or cut. One writer is kept
 * from message to message, with its memory; what it has written is copied out.
 */

import { Failure } from "./errors.ts";
import { writeText, writeUuid } from "./text.ts";
import { MAX_STRING, MAX_TAG } from "./types.ts";
import type { UnknownTag } from "./types.ts";

const FIRST_SIZE = 1 << 12;
/** A message beyond this size is handed out with the memory that it is in. */
const LARGE = 1 << 16;

/** The most memory that a writer keeps. */
const KEPT = 1 << 20;

let idle: Writer | null = null;

/** Takes the writer that is kept, or a new one while that is in use. */
export function openWriter(): Writer {
  const w = idle ?? new Writer();
  idle = null;
  w.pos = 0;
  return w;
}

/** Keeps a writer for the next message, unless it has much memory. */
export function closeWriter(w: Writer): void {
  idle = w.capacity <= KEPT ? w : null;
}

export class Writer {
  private data: Uint8Array = new Uint8Array(FIRST_SIZE);
  private view: DataView = new DataView(this.data.buffer);
  private size: number = FIRST_SIZE;
  pos = 0;

  /** The bytes of its memory. */
  get capacity(): number {
    return this.size;
  }

  /** The bytes written: not shared with those of any later message. */
  finish(): Uint8Array {
    const n = this.pos;
    if (n < LARGE || n < this.size - (this.size >> 2)) {
      return this.data.slice(0, n);
    }
    const made = this.data.subarray(0, n);
    this.use(new Uint8Array(FIRST_SIZE));
    return made;
  }

  private use(data: Uint8Array): void {
    this.data = data;
    this.view = new DataView(data.buffer);
    this.size = data.length;
  }

  /** Makes room for `n` bytes, moves over them, and returns where they begin. */
  private step(n: number): number {
    const p = this.pos;
    if (n > this.size - p) {
      this.grow(p + n);
    }
    this.pos = p + n;
    return p;
  }

  private grow(needed: number): void {
    const more = new Uint8Array(Math.max(Math.ceil(needed * 1.125), this.size * 2));
    more.set(this.data.subarray(0, this.pos));
    this.use(more);
  }

  // -- failures

  private expected(what: string, value: unknown): Failure {
    if (value === null) {
      return new Failure("null, but not nullable");
    }
    return new Failure(`expected ${what}, got ${shown(value)}`);
  }

  /** The failure of what is not a struct. */
  notAnObject(value: unknown): Failure {
    return this.expected("an object", value);
  }

  notNullable(): Failure {
    return this.expected("", null);
  }

  /** Throws for a value of a field that the version lacks; undefined is none. */
  refuse(value: unknown, version: number): void {
    if (value !== undefined) {
      throw new Failure(`set, but not in version ${version}`);
    }
  }

  /** Throws for unknown tagged fields in a version without any. */
  refuseTags(unknown: UnknownTag[] | null, version: number): void {
    if (unknown !== null && unknown !== undefined && this.countOf(unknown) > 0) {
      this.refuse(unknown, version);
    }
  }

  // -- fixed width

  bool(value: boolean): void {
    if (value !== true && value !== false) {
      throw this.expected("a boolean", value);
    }
    const p = this.step(1);
    this.data[p] = value ? 1 : 0;
  }

  int8(value: number): void {
    if ((value << 24) >> 24 !== value) {
      throw this.expected("an int8", value);
    }
    const p = this.step(1);
    this.data[p] = value;
  }

  int16(value: number): void {
    if ((value << 16) >> 16 !== value) {
      throw this.expected("an int16", value);
    }
    const p = this.step(2);
    this.data[p] = value >> 8;
    this.data[p + 1] = value;
  }

  uint16(value: number): void {
    if ((value & 0xffff) !== value) {
      throw this.expected("a uint16", value);
    }
    const p = this.step(2);
    this.data[p] = value >> 8;
    this.data[p + 1] = value;
  }

  int32(value: number): void {
    if ((value | 0) !== value) {
      throw this.expected("an int32", value);
    }
    this.put32(this.step(4), value);
  }

  uint32(value: number): void {
    if (value >>> 0 !== value) {
      throw this.expected("a uint32", value);
    }
    this.put32(this.step(4), value);
  }

  private put32(p: number, value: number): void {
    const data = this.data;
    data[p] = value >> 24;
    data[p + 1] = value >> 16;
    data[p + 2] = value >> 8;
    data[p + 3] = value;
  }

  int64(value: bigint): void {
    if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) {
      throw this.expected("an int64 as a bigint", value);
    }
    this.view.setBigInt64(this.step(8), value);
  }

  float64(value: number): void {
    if (typeof value !== "number") {
      throw this.expected("a number", value);
    }
    this.view.setFloat64(this.step(8), value);
  }

  uuid(value: string): void {
    if (typeof value !== "string") {
      throw this.expected("a uuid of 22 characters", value);
    }
    if (!writeUuid(this.data, this.step(16), value)) {
      throw this.expected("a uuid of 22 characters of URL-safe base64", value);
    }
  }

  // -- lengths

  uvarint(value: number): void {
    if (value < 0x80) {
      const p = this.step(1);
      this.data[p] = value;
    } else {
      this.longUvarint(this.step(uvarintSize(value)), value);
    }
  }

  private longUvarint(p: number, value: number): void {
    for (; value > 0x7f; value >>>= 7) {
      this.data[p++] = (value & 0x7f) | 0x80;
    }
    this.data[p] = value;
  }

  /** Writes the count of an array. */
  count(items: readonly unknown[]): number {
    const n = this.countOf(items);
    this.put32(this.step(4), n);
    return n;
  }

  compactCount(items: readonly unknown[]): number {
    const n = this.countOf(items);
    this.uvarint(n + 1);
    return n;
  }

  private countOf(items: readonly unknown[]): number {
    if (!Array.isArray(items)) {
      throw this.expected("an array", items);
    }
    if (items.length > 0x7fffffff) {
      throw new Failure(`an array of ${items.length} elements; 2147483647 is the most`);
    }
    return items.length;
  }

  nullCount(): void {
    this.put32(this.step(4), -1);
  }

  nullCompactCount(): void {
    this.uvarint(0);
  }

  /** Writes whether a nullable struct follows. */
  marker(present: boolean): void {
    const p = this.step(1);
    this.data[p] = present ? 1 : 0xff;
  }

  /** Writes the same in a tagged field. */
  taggedMarker(present: boolean): void {
    const p = this.step(1);
    this.data[p] = present ? 1 : 0;
  }

  // -- variable width

  string(value: string | null): void {
    if (typeof value !== "string") {
      throw this.expected("a string", value);
    }
    const p = this.step(2);
    const n = this.text(value, p + 2);
    this.data[p] = n >> 8;
    this.data[p + 1] = n;
  }

  nullableString(value: string | null): void {
    if (value === null) {
      this.int16(-1);
    } else {
      this.string(value);
    }
  }

  compactString(value: string | null): void {
    if (typeof value !== "string") {
      throw this.expected("a string", value);
    }
    const p = this.step(1);
    this.closeSize(p, this.text(value, p + 1), 1);
  }

  nullableCompactString(value: string | null): void {
    if (value === null) {
      this.uvarint(0);
    } else {
      this.compactString(value);
    }
  }

  /** Writes text at `start`, and returns its size. */
  private text(value: string, start: number): number {
    if (value.length > MAX_STRING) {
      throw new Failure(`a string of ${value.length} characters; ${MAX_STRING} bytes are the most`);
    }
    const most = value.length * 3;
    if (most > this.size - start) {
      this.grow(start + most);
    }
    const end = writeText(this.data, start, value);
    const n = end - start;
    if (n !== value.length) {
      this.checkText(value, n);
    }
    this.pos = end;
    return n;
  }

  /** Checks text that is not ASCII. */
  private checkText(value: string, n: number): void {
    if (/\p{Surrogate}/u.test(value)) {
      throw new Failure("a string with half a surrogate pair: it has no UTF-8");
    }
    if (n > MAX_STRING) {
      throw new Failure(`a string of ${n} bytes; ${MAX_STRING} is the most`);
    }
  }

  bytes(value: Uint8Array | null): void {
    const n = this.sizeOf(value);
    this.put32(this.step(4), n);
    this.raw(value, n);
  }

  nullableBytes(value: Uint8Array | null): void {
    if (value === null) {
      this.put32(this.step(4), -1);
    } else {
      this.bytes(value);
    }
  }

  compactBytes(value: Uint8Array | null): void {
    const n = this.sizeOf(value);
    this.uvarint(n + 1);
    this.raw(value, n);
  }

  nullableCompactBytes(value: Uint8Array | null): void {
    if (value === null) {
      this.uvarint(0);
    } else {
      this.compactBytes(value);
    }
  }

  private sizeOf(value: Uint8Array | null): number {
    if (!isBytes(value)) {
      throw this.expected("a Uint8Array", value);
    }
    if (value.length > 0x7fffffff) {
      throw new Failure(`${value.length} bytes; 2147483647 are the most`);
    }
    return value.length;
  }

  private raw(value: Uint8Array | null, n: number): void {
    const p = this.step(n);
    this.data.set(value!, p);
  }

  // -- tagged fields (KIP-482)

  /** Begins a block of tagged fields: returns its place, for closeBlock. */
  openBlock(): number {
    return this.step(1);
  }

  /** Begins a known tagged field: returns its place, for closeTag. */
  openTag(tag: number): number {
    this.uvarint(tag);
    return this.step(1);
  }

  closeTag(place: number): void {
    this.closeSize(place, this.pos - place - 1, 0);
  }

  /** Ends a block with `n` known tagged fields, in ascending order; unknown ones come between. */
  closeBlock(place: number, n: number, unknown: UnknownTag[] | null): void {
    if (unknown === null || unknown === undefined || this.countOf(unknown) === 0) {
      this.closeSize(place, n, 0);
    } else {
      const known = this.data.slice(place + 1, this.pos);
      this.pos = place;
      this.merged(tagsOf(known, n), unknown);
    }
  }

  /** Writes the block of a struct without known tagged fields. */
  tags(unknown: UnknownTag[] | null): void {
    if (unknown === null || unknown === undefined) {
      this.uvarint(0);
    } else {
      this.countOf(unknown);
      this.merged([], unknown);
    }
  }

  private merged(known: UnknownTag[], unknown: UnknownTag[]): void {
    const all = [...known, ...unknown.map((one) => this.checkedTag(one))];
    all.sort((one, other) => one.tag - other.tag);
    this.uvarint(all.length);
    let last = -1;
    for (const { tag, data } of all) {
      if (tag === last) {
        throw new Failure(`tag ${tag} twice`);
      }
      last = tag;
      this.uvarint(tag);
      this.uvarint(data.length);
      this.raw(data, data.length);
    }
  }

  private checkedTag(one: UnknownTag): UnknownTag {
    if (one === null || typeof one !== "object") {
      throw this.notAnObject(one);
    }
    const { tag, data } = one;
    if (!Number.isInteger(tag) || tag < 0 || tag > MAX_TAG) {
      throw this.expected(`a tag from 0 to ${MAX_TAG}`, tag);
    }
    this.sizeOf(data);
    return { tag, data };
  }

  /** Writes `n + more` into the byte at `place`; what follows moves if it takes more than one. */
  private closeSize(place: number, n: number, more: number): void {
    const value = n + more;
    if (value < 0x80) {
      this.data[place] = value;
      return;
    }
    const size = uvarintSize(value);
    const end = this.pos;
    this.step(size - 1);
    this.data.copyWithin(place + size, place + 1, end);
    this.longUvarint(place, value);
  }

  // -- frames

  /** Writes the size of a frame, all after its own four bytes, at its beginning. */
  closeFrame(): void {
    if (this.pos - 4 > 0x7fffffff) {
      throw new Failure(`a frame of ${this.pos - 4} bytes; 2147483647 is the most`);
    }
    this.put32(0, this.pos - 4);
  }
}

/** Whether a value is a Uint8Array, also one of another realm, as tests in a sandbox have them. */
function isBytes(value: unknown): value is Uint8Array {
  return (
    value instanceof Uint8Array ||
    (ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Uint8Array]")
  );
}

function uvarintSize(value: number): number {
  return value < 0x4000 ? (value < 0x80 ? 1 : 2) : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
}

/** Reads the known tagged fields of a block again. */
function tagsOf(block: Uint8Array, n: number): UnknownTag[] {
  let p = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = block[p++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value >>> 0;
      }
    }
  };
  return Array.from({ length: n }, () => {
    const tag = next();
    const size = next();
    p += size;
    return { tag, data: block.subarray(p - size, p) };
  });
}

/** A value as an error shows it. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    case "bigint":
      return `${value}n`;
    case "string":
      return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
    default:
      return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
  }
}
