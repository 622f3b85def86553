/**
 * Text and uuids as bytes.
 *
 * Short ASCII text is converted here, as a call into the engine costs more. Longer text takes
 * Node's Buffer if there is one, and TextDecoder and TextEncoder otherwise.
 */

import { ZERO_UUID } from "./types.ts";

interface Decoder {
  decode(data: Uint8Array): string;
}
interface Encoder {
  encodeInto(text: string, to: Uint8Array): { written: number };
}
interface Native {
  utf8Slice?(start: number, end: number): string;
  utf8Write?(text: string, start: number, length: number): number;
}
declare const TextDecoder: new (
  encoding: string,
  options: { fatal: boolean; ignoreBOM: boolean },
) => Decoder;
declare const TextEncoder: new () => Encoder;

const native = (globalThis as { Buffer?: { prototype: Native } }).Buffer?.prototype;
const utf8Slice = native?.utf8Slice;
const utf8Write = native?.utf8Write;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Bytes of the longest text that is read byte by byte. */
const SHORT = 20;
/** Characters of the longest text that is written character by character. */
const SHORT_WRITE = 24;

const codes: number[][] = Array.from({ length: SHORT + 1 }, (_, n) => new Array<number>(n).fill(0));

/** Reads UTF-8 from `start` to `end`; undefined if it is invalid. */
export function readText(bytes: Uint8Array, start: number, end: number): string | undefined {
  const n = end - start;
  if (n <= SHORT) {
    const each = codes[n]!;
    let seen = 0;
    for (let k = 0; k < n; k++) {
      const code = bytes[start + k]!;
      seen |= code;
      each[k] = code;
    }
    if (seen < 0x80) {
      return String.fromCharCode.apply(null, each);
    }
  } else if (utf8Slice !== undefined) {
    const text = utf8Slice.call(bytes, start, end);
    if (!text.includes("\ufffd")) {
      return text;
    }
  }
  try {
    return decoder.decode(bytes.subarray(start, end));
  } catch {
    return undefined;
  }
}

/**
 * Writes well-formed text at `start`, where there is room for three bytes a character; returns
 * where it ends.
 */
export function writeText(bytes: Uint8Array, start: number, text: string): number {
  const n = text.length;
  if (n <= SHORT_WRITE) {
    let k = 0;
    for (; k < n; k++) {
      const code = text.charCodeAt(k);
      if (code > 0x7f) {
        break;
      }
      bytes[start + k] = code;
    }
    if (k === n) {
      return start + n;
    }
  }
  if (utf8Write !== undefined) {
    return start + utf8Write.call(bytes, text, start, n * 3);
  }
  return start + encoder.encodeInto(text, bytes.subarray(start, start + n * 3)).written;
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LETTER = Uint8Array.from(LETTERS, (letter) => letter.charCodeAt(0));
const DIGIT = new Int8Array(128).fill(-1);
for (let k = 0; k < 64; k++) {
  DIGIT[LETTER[k]!] = k;
}

/** Reads 16 bytes as Kafka prints a uuid: 22 characters of URL-safe base64. */
export function readUuid(u: Uint8Array, p: number): string {
  const a = (u[p]! << 16) | (u[p + 1]! << 8) | u[p + 2]!;
  const b = (u[p + 3]! << 16) | (u[p + 4]! << 8) | u[p + 5]!;
  const c = (u[p + 6]! << 16) | (u[p + 7]! << 8) | u[p + 8]!;
  const d = (u[p + 9]! << 16) | (u[p + 10]! << 8) | u[p + 11]!;
  const e = (u[p + 12]! << 16) | (u[p + 13]! << 8) | u[p + 14]!;
  const f = u[p + 15]!;
  if ((a | b | c | d | e | f) === 0) {
    return ZERO_UUID;
  }
  return String.fromCharCode(
    LETTER[a >> 18]!, LETTER[(a >> 12) & 63]!, LETTER[(a >> 6) & 63]!, LETTER[a & 63]!,
    LETTER[b >> 18]!, LETTER[(b >> 12) & 63]!, LETTER[(b >> 6) & 63]!, LETTER[b & 63]!,
    LETTER[c >> 18]!, LETTER[(c >> 12) & 63]!, LETTER[(c >> 6) & 63]!, LETTER[c & 63]!,
    LETTER[d >> 18]!, LETTER[(d >> 12) & 63]!, LETTER[(d >> 6) & 63]!, LETTER[d & 63]!,
    LETTER[e >> 18]!, LETTER[(e >> 12) & 63]!, LETTER[(e >> 6) & 63]!, LETTER[e & 63]!,
    LETTER[f >> 2]!, LETTER[(f & 3) << 4]!,
  );
}

/** Writes a uuid of 22 characters as 16 bytes; false if it is none. */
export function writeUuid(bytes: Uint8Array, p: number, text: string): boolean {
  let wrong = text.length === 22 ? 0 : -1;
  for (let k = 0; k < 20; k += 4, p += 3) {
    const one = digit(text, k);
    const two = digit(text, k + 1);
    const three = digit(text, k + 2);
    const four = digit(text, k + 3);
    wrong |= one | two | three | four;
    bytes[p] = (one << 2) | (two >> 4);
    bytes[p + 1] = (two << 4) | (three >> 2);
    bytes[p + 2] = (three << 6) | four;
  }
  const first = digit(text, 20);
  const second = digit(text, 21);
  bytes[p] = (first << 2) | (second >> 4);
  return (wrong | first | second) >= 0 && (second & 15) === 0;
}

/** The value of one character, negative for any that base64 does not have. */
function digit(text: string, k: number): number {
  const code = text.charCodeAt(k);
  return code < 128 ? DIGIT[code]! : -1;
}
