/**
 * Reads one message.
 *
 * Every read is compared with the end first; a count is compared with the bytes left, each
 * element taking its least, before anything is allocated for it.
 */

import { Failure } from "./errors.ts";
import { readText, readUuid } from "./text.ts";
import { MAX_STRING, MAX_TAG, NO_BYTES } from "./types.ts";
import type { UnknownTag } from "./types.ts";

/** Reads `data` from `pos` on. Bytes fields are views of `data`, not copies. */
export class Reader {
  readonly data: Uint8Array;
  pos: number;
  readonly end: number;
  private view: DataView | null = null;

  constructor(data: Uint8Array, pos = 0) {
    if (!ArrayBuffer.isView(data)) {
      throw new TypeError("the data is not a Uint8Array");
    }
    // one class of arrays, also for a Buffer: so the engine compiles each read for one
    this.data =
      data.constructor === Uint8Array
        ? data
        : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.pos = pos;
    this.end = data.byteLength;
  }

  // -- fixed width

  bool(): boolean {
    const p = this.step(1);
    return this.data[p] !== 0;
  }

  int8(): number {
    const p = this.step(1);
    return (this.data[p]! << 24) >> 24;
  }

  int16(): number {
    const p = this.step(2);
    return (((this.data[p]! << 8) | this.data[p + 1]!) << 16) >> 16;
  }

  uint16(): number {
    const p = this.step(2);
    return (this.data[p]! << 8) | this.data[p + 1]!;
  }

  int32(): number {
    const p = this.step(4);
    const data = this.data;
    return (data[p]! << 24) | (data[p + 1]! << 16) | (data[p + 2]! << 8) | data[p + 3]!;
  }

  /** Reads elements whose count was compared with the bytes left; literals are the fastest arrays. */
  int32s(n: number): number[] {
    switch (n) {
      case 0:
        return [];
      case 1:
        return [this.int32()];
      case 2:
        return [this.int32(), this.int32()];
      case 3:
        return [this.int32(), this.int32(), this.int32()];
      default: {
        const made = new Array<number>(n);
        for (let k = 0; k < n; k++) {
          made[k] = this.int32();
        }
        return made;
      }
    }
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  int64(): bigint {
    const p = this.step(8);
    return (this.view ?? this.opened()).getBigInt64(p);
  }

  float64(): number {
    const p = this.step(8);
    return (this.view ?? this.opened()).getFloat64(p);
  }

  uuid(): string {
    const p = this.step(16);
    return readUuid(this.data, p);
  }

  /** Moves over `n` bytes, and returns where they begin. */
  private step(n: number): number {
    const p = this.pos;
    if (n > this.end - p) {
      throw this.short(n);
    }
    this.pos = p + n;
    return p;
  }

  private opened(): DataView {
    const data = this.data;
    return (this.view = new DataView(data.buffer, data.byteOffset, data.byteLength));
  }

  // -- failures

  /** A failure at the position. */
  fail(reason: string): Failure {
    return new Failure(reason, this.pos);
  }

  private short(n: number): Failure {
    return this.fail(`${counted(n, "byte")} wanted, ${this.end - this.pos} left`);
  }

  private notNull(start: number): Failure {
    this.pos = start;
    return this.fail("null, but not nullable");
  }

  // -- lengths

  /** Reads an unsigned varint of at most 5 bytes; a non-minimal one is accepted. */
  uvarint(): number {
    const p = this.pos;
    if (p < this.end) {
      const byte = this.data[p]!;
      if (byte < 0x80) {
        this.pos = p + 1;
        return byte;
      }
    }
    return this.longUvarint();
  }

  private longUvarint(): number {
    let value = 0;
    let p = this.pos;
    for (let shift = 0; shift < 35; shift += 7) {
      if (p >= this.end) {
        throw this.fail("the data ends inside a varint");
      }
      const byte = this.data[p++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.pos = p;
        return value >>> 0;
      }
    }
    throw this.fail("a varint goes on after its fifth byte");
  }

  /** Reads the count of an array whose elements take `least` bytes or more. */
  count(least: number): number {
    const start = this.pos;
    const n = this.int32();
    if (n < 0 || n * least > this.end - this.pos) {
      throw this.wrongCount(n, start);
    }
    return n;
  }

  compactCount(least: number): number {
    const start = this.pos;
    const n = this.uvarint() - 1;
    if (n < 0 || n * least > this.end - this.pos) {
      throw this.wrongCount(n, start);
    }
    return n;
  }

  /** Reads a count, or a negative number for null. */
  nullableCount(least: number): number {
    const start = this.pos;
    const n = this.int32();
    if (n * least > this.end - this.pos) {
      throw this.wrongCount(n, start);
    }
    return n;
  }

  nullableCompactCount(least: number): number {
    const start = this.pos;
    const n = this.uvarint() - 1;
    if (n * least > this.end - this.pos) {
      throw this.wrongCount(n, start);
    }
    return n;
  }

  private wrongCount(n: number, start: number): Failure {
    if (n < 0) {
      return this.notNull(start);
    }
    const left = counted(this.end - this.pos, "byte");
    this.pos = start;
    return this.fail(`an array of ${counted(n, "element")}, ${left} left`);
  }

  /** Reads the byte before a nullable struct: negative is null. */
  marker(): boolean {
    return this.int8() >= 0;
  }

  /** Reads the varint before a nullable struct in a tagged field: 0 is null. */
  taggedMarker(): boolean {
    return this.uvarint() !== 0;
  }

  // -- variable width

  string(): string {
    const start = this.pos;
    const n = this.int16();
    if (n < 0) {
      throw this.notNull(start);
    }
    return this.text(n);
  }

  nullableString(): string | null {
    const n = this.int16();
    return n < 0 ? null : this.text(n);
  }

  compactString(): string {
    const start = this.pos;
    const n = this.uvarint() - 1;
    if (n < 0) {
      throw this.notNull(start);
    }
    return this.text(n);
  }

  nullableCompactString(): string | null {
    const n = this.uvarint() - 1;
    return n < 0 ? null : this.text(n);
  }

  private text(n: number): string {
    if (n > MAX_STRING) {
      throw this.fail(`a string of ${n} bytes; ${MAX_STRING} is the most`);
    }
    const p = this.step(n);
    const text = readText(this.data, p, p + n);
    if (text === undefined) {
      this.pos = p;
      throw this.fail("invalid UTF-8");
    }
    return text;
  }

  bytes(): Uint8Array {
    const start = this.pos;
    const n = this.int32();
    if (n < 0) {
      throw this.notNull(start);
    }
    return this.take(n);
  }

  nullableBytes(): Uint8Array | null {
    const n = this.int32();
    return n < 0 ? null : this.take(n);
  }

  compactBytes(): Uint8Array {
    const start = this.pos;
    const n = this.uvarint() - 1;
    if (n < 0) {
      throw this.notNull(start);
    }
    return this.take(n);
  }

  nullableCompactBytes(): Uint8Array | null {
    const n = this.uvarint() - 1;
    return n < 0 ? null : this.take(n);
  }

  /** Takes the next `n` bytes: a view, not a copy. */
  take(n: number): Uint8Array {
    if (n === 0) {
      return NO_BYTES;
    }
    const p = this.step(n);
    return new Uint8Array(this.data.buffer, this.data.byteOffset + p, n);
  }

  // -- tagged fields (KIP-482)

  /** Reads the tagged fields of a struct without known ones. */
  tags(): UnknownTag[] | null {
    let n = this.tagCount();
    let kept: UnknownTag[] | null = null;
    for (; n > 0; n--) {
      const tag = this.uvarint();
      kept = this.keepTag(kept, tag, this.uvarint());
    }
    return kept;
  }

  /** Reads how many tagged fields follow: each takes two bytes or more. */
  tagCount(): number {
    const start = this.pos;
    const n = this.uvarint();
    if (n * 2 > this.end - this.pos) {
      const left = counted(this.end - this.pos, "byte");
      this.pos = start;
      throw this.fail(`${counted(n, "tagged field")}, ${left} left`);
    }
    return n;
  }

  keepTag(kept: UnknownTag[] | null, tag: number, size: number): UnknownTag[] {
    if (tag > MAX_TAG) {
      throw this.fail(`tag ${tag} is out of range`);
    }
    const one: UnknownTag = { tag, data: this.take(size) };
    if (kept === null) {
      return [one];
    }
    kept.push(one);
    return kept;
  }

  /** Compares the size of a known tagged field with what was read. */
  endTag(start: number, size: number): void {
    if (this.pos - start !== size) {
      const taken = this.pos - start;
      this.pos = start;
      throw this.fail(`a tagged field of ${counted(size, "byte")} takes ${taken}`);
    }
  }

  /** The failure of a tag that the schema knows in other versions only. */
  misplacedTag(tag: number): Failure {
    return this.fail(`tag ${tag} does not exist in this version`);
  }

  /** Ends a message: no byte may follow. */
  finish(): void {
    if (this.pos !== this.end) {
      throw this.fail(`${counted(this.end - this.pos, "byte")} after the last field`);
    }
  }
}

function counted(n: number, noun: string): string {
  return n === 1 ? `${n} ${noun}` : `${n} ${noun}s`;
}
