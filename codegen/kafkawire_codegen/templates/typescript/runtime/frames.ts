/**
 * Requests and responses as frames: an int32 size, a header, a body.
 *
 *     request   size | api key, version, correlation id, client id ... | body
 *     response  size | correlation id ...                              | body
 */

import { DecodeError, asDecodeError, asEncodeError, failed } from "./errors.ts";
import { Reader } from "./reader.ts";
import { closeWriter, openWriter } from "./writer.ts";
import type { Writer } from "./writer.ts";
import type { Codec, UnknownTag } from "./types.ts";

/** What every version of a request header begins with. */
export interface RequestStart {
  apiKey: number;
  apiVersion: number;
  correlationId: number;
}

export interface RequestHead extends RequestStart {
  /** Null too in version 0 of the header, which has none. */
  clientId: string | null;
  unknownTags: UnknownTag[] | null;
}

export interface ResponseHead {
  correlationId: number;
  unknownTags: UnknownTag[] | null;
}

export interface Request<M> {
  header: RequestHead;
  message: M;
}

export interface Response<M> {
  header: ResponseHead;
  message: M;
  /** The version of the body: the requested one, except for an ApiVersions response of error 35. */
  version: number;
}

export interface RequestOptions {
  correlationId: number;
  clientId?: string | null;
  unknownTags?: UnknownTag[] | null;
}

export interface ResponseOptions {
  correlationId: number;
  unknownTags?: UnknownTag[] | null;
}

/** The largest frame that is accepted, as Kafka's socket.request.max.bytes. */
const MAX_FRAME = 100 * 1024 * 1024;
const API_VERSIONS = 18;
const UNSUPPORTED_VERSION = 35;
const REQUEST = "RequestHeader";
const RESPONSE = "ResponseHeader";

/** Encodes a request with its size and header. */
export function encodeRequest<M>(
  codec: Codec<M>,
  message: M,
  version: number,
  options: RequestOptions,
): Uint8Array {
  const headerVersion = headerVersionOf(codec, "request", version);
  return encodeFrame(codec, message, version, REQUEST, (w) =>
    writeRequestHeader(w, codec.apiKey ?? -1, version, headerVersion, options),
  );
}

/** Encodes a response with its size and header; version: that of the request. */
export function encodeResponse<M>(
  codec: Codec<M>,
  message: M,
  version: number,
  options: ResponseOptions,
): Uint8Array {
  const headerVersion = headerVersionOf(codec, "response", version);
  return encodeFrame(codec, message, version, RESPONSE, (w) =>
    writeResponseHeader(w, headerVersion, options),
  );
}

function encodeFrame<M>(
  codec: Codec<M>,
  message: M,
  version: number,
  header: string,
  writeHeader: (w: Writer) => void,
): Uint8Array {
  const w = openWriter();
  let inside = header;
  try {
    w.int32(0);
    writeHeader(w);
    inside = codec.name;
    codec.write(w, message, version);
    w.closeFrame();
    return w.finish();
  } catch (failure) {
    throw asEncodeError(failure, inside);
  } finally {
    closeWriter(w);
  }
}

/** Reads which request a frame is, and so which codec decodes it. */
export function requestStart(frame: Uint8Array): RequestStart {
  const r = new Reader(frame);
  try {
    checkSize(r);
    return readRequestHeader(r, 0);
  } catch (failure) {
    throw asDecodeError(failure, REQUEST);
  }
}

/** Decodes a request with its size and header; the version is in the header. */
export function decodeRequest<M>(codec: Codec<M>, frame: Uint8Array): Request<M> {
  const { apiKey, apiVersion } = requestStart(frame);
  if (apiKey !== codec.apiKey) {
    throw new DecodeError(`${REQUEST}.apiKey`, `${apiKey} is not the key of ${codec.name}`, 4);
  }
  const headerVersion = headerVersionOf(codec, "request", apiVersion);
  const r = new Reader(frame, 4);
  let inside = REQUEST;
  try {
    const header = readRequestHeader(r, headerVersion);
    inside = codec.name;
    const message = codec.read(r, apiVersion);
    r.finish();
    return { header, message };
  } catch (failure) {
    throw asDecodeError(failure, inside);
  }
}

/** Decodes a response with its size and header; version: that of the request. */
export function decodeResponse<M>(
  codec: Codec<M>,
  frame: Uint8Array,
  version: number,
): Response<M> {
  const headerVersion = headerVersionOf(codec, "response", version);
  const r = new Reader(frame);
  let inside = RESPONSE;
  try {
    checkSize(r);
    const header = readResponseHeader(r, headerVersion);
    inside = codec.name;
    const body = bodyVersion(codec, r, version);
    const message = codec.read(r, body);
    r.finish();
    return { header, message, version: body };
  } catch (failure) {
    throw asDecodeError(failure, inside);
  }
}

/**
 * A broker that does not have the requested version of ApiVersions responds with error 35 and a
 * body of version 0 (KIP-511).
 */
function bodyVersion<M>(codec: Codec<M>, r: Reader, version: number): number {
  if (codec.apiKey !== API_VERSIONS || codec.firstVersion > 0 || r.end - r.pos < 2) {
    return version;
  }
  const error = r.int16();
  r.pos -= 2;
  return error === UNSUPPORTED_VERSION ? 0 : version;
}

function headerVersionOf<M>(codec: Codec<M>, type: string, version: number): number {
  const found = codec.type === type ? codec.headerVersion(version) : null;
  if (found === null) {
    throw new TypeError(`${codec.name} is not a ${type}`);
  }
  return found;
}

function checkSize(r: Reader): void {
  let reason = "";
  try {
    const size = r.int32();
    const left = r.end - r.pos;
    if (size === left) {
      return;
    }
    reason = `a frame of ${size} bytes, ${left} are there`;
  } catch (failure) {
    throw failed(failure, "size", -1);
  }
  r.pos = 0;
  throw failed(r.fail(reason), "size", -1);
}

/** Reads a request header; version 0 is what every version begins with. */
function readRequestHeader(r: Reader, headerVersion: number): RequestHead {
  let at = "apiKey";
  try {
    const apiKey = r.int16();
    at = "apiVersion";
    const apiVersion = r.int16();
    at = "correlationId";
    const correlationId = r.int32();
    at = "clientId";
    const clientId = headerVersion >= 1 ? r.nullableString() : null;
    at = "unknownTags";
    const unknownTags = headerVersion >= 2 ? r.tags() : null;
    return { apiKey, apiVersion, correlationId, clientId, unknownTags };
  } catch (failure) {
    throw failed(failure, at, -1);
  }
}

function readResponseHeader(r: Reader, headerVersion: number): ResponseHead {
  let at = "correlationId";
  try {
    const correlationId = r.int32();
    at = "unknownTags";
    const unknownTags = headerVersion >= 1 ? r.tags() : null;
    return { correlationId, unknownTags };
  } catch (failure) {
    throw failed(failure, at, -1);
  }
}

function writeRequestHeader(
  w: Writer,
  apiKey: number,
  version: number,
  headerVersion: number,
  options: RequestOptions,
): void {
  let at = "apiKey";
  try {
    w.int16(apiKey);
    at = "apiVersion";
    w.int16(version);
    at = "correlationId";
    w.int32(options.correlationId);
    if (headerVersion >= 1) {
      at = "clientId";
      w.nullableString(options.clientId ?? null);
    }
    if (headerVersion >= 2) {
      at = "unknownTags";
      w.tags(options.unknownTags ?? null);
    }
  } catch (failure) {
    throw failed(failure, at, -1);
  }
}

function writeResponseHeader(w: Writer, headerVersion: number, options: ResponseOptions): void {
  let at = "correlationId";
  try {
    w.int32(options.correlationId);
    if (headerVersion >= 1) {
      at = "unknownTags";
      w.tags(options.unknownTags ?? null);
    }
  } catch (failure) {
    throw failed(failure, at, -1);
  }
}

/** Splits what a connection receives into frames, sizes included. */
export class FrameSplitter {
  private readonly max: number;
  private parts: Uint8Array[] = [];
  private held = 0;

  /** max: the largest size; a larger one is an error before its bytes have arrived. */
  constructor(max: number = MAX_FRAME) {
    this.max = max;
  }

  /** Takes received bytes, and returns the frames that are complete: views where that is possible. */
  push(received: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = [];
    this.parts.push(received);
    this.held += received.length;
    for (let size = this.frameSize(); size <= this.held; size = this.frameSize()) {
      const all = this.joined();
      frames.push(all.subarray(0, size));
      this.parts = size < all.length ? [all.subarray(size)] : [];
      this.held -= size;
    }
    return frames;
  }

  /** The size of the next frame with its own four bytes; Infinity while they are not there. */
  private frameSize(): number {
    if (this.held < 4) {
      return Infinity;
    }
    if (this.parts[0]!.length < 4) {
      this.joined();
    }
    const size = new Reader(this.parts[0]!).int32();
    if (size < 0 || size > this.max) {
      throw new DecodeError("size", `a frame of ${size} bytes; ${this.max} is the most`, 0);
    }
    return size + 4;
  }

  private joined(): Uint8Array {
    if (this.parts.length > 1) {
      const all = new Uint8Array(this.held);
      let at = 0;
      for (const part of this.parts) {
        all.set(part, at);
        at += part.length;
      }
      this.parts = [all];
    }
    return this.parts[0]!;
  }
}
