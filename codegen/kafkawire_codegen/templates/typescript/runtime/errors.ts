/** The errors of decoding and encoding, and how they get their paths. */

/** What every error of this package is: `path` names the field, `reason` says what is wrong. */
export class CodecError extends Error {
  static {
    this.prototype.name = "CodecError";
  }

  /** The field: `FetchResponse.responses[0].partitions[1].records`. */
  readonly path: string;
  readonly reason: string;

  constructor(path: string, reason: string, message: string = `${path}: ${reason}`) {
    super(message);
    this.path = path;
    this.reason = reason;
  }
}

/** Bytes that are not the message that they should be; `offset` counts from their beginning. */
export class DecodeError extends CodecError {
  static {
    this.prototype.name = "DecodeError";
  }

  readonly offset: number;

  constructor(path: string, reason: string, offset: number) {
    super(path, reason, `${path}: ${reason} at byte ${offset}`);
    this.offset = offset;
  }
}

/** A message that cannot be written in that version. */
export class EncodeError extends CodecError {
  static {
    this.prototype.name = "EncodeError";
  }
}

/** A version that the message does not have. */
export class UnsupportedVersionError extends CodecError {
  static {
    this.prototype.name = "UnsupportedVersionError";
  }
}

/**
 * What a reader or writer throws: the functions that it passes through add where they were, and the
 * outermost one makes an error of it. So a message that is right costs nothing.
 */
export class Failure {
  readonly reason: string;
  readonly offset: number;
  path = "";

  constructor(reason: string, offset = 0) {
    this.reason = reason;
    this.offset = offset;
  }

  under(name: string): string {
    return this.path.length === 0 ? name : `${name}.${this.path}`;
  }
}

/** Adds the field, and the index if it is not negative, at which a failure passed; returns it. */
export function failed(failure: unknown, field: string, index: number): unknown {
  if (failure instanceof Failure) {
    failure.path = failure.under(index < 0 ? field : `${field}[${index}]`);
  }
  return failure;
}

/** Makes the error of a failed decode; any other error stays as it is. */
export function asDecodeError(failure: unknown, message: string): unknown {
  return failure instanceof Failure
    ? new DecodeError(failure.under(message), failure.reason, failure.offset)
    : failure;
}

/** Makes the error of a failed encode; any other error stays as it is. */
export function asEncodeError(failure: unknown, message: string): unknown {
  return failure instanceof Failure
    ? new EncodeError(failure.under(message), failure.reason)
    : failure;
}

/** Throws unless a version is one of those from `first` to `last`. */
export function checkVersion(name: string, first: number, last: number, version: number): void {
  if (!(version >= first && version <= last && Number.isInteger(version))) {
    const all = first === last ? `version ${first}` : `versions ${first} to ${last}`;
    throw new UnsupportedVersionError(name, `version ${String(version)} is unknown; it has ${all}`);
  }
}
