/** Why a command was rejected. The HTTP API maps each code to a response. */
export type RejectionCode =
  | 'invalid_input'
  | 'required'
  | 'not_found'
  | 'conflict'
  | 'too_many_concurrent_backfills'
  /** A bug in exportd. The command is valid, and repeating it fails again. */
  | 'internal_error';

/** A command breaks a rule of the domain. The rejection is recorded as the command's outcome and is never retried. */
export class CommandRejected extends Error {
  override readonly name = 'CommandRejected';
  readonly code: RejectionCode;
  /** The path of the invalid field of the request, joined by `__`, or null. */
  readonly attr: string | null;

  constructor(code: RejectionCode, detail: string, attr: string | null = null) {
    super(detail);
    this.code = code;
    this.attr = attr;
  }
}

/**
 * Whose fault an error is. Only a `tenant`'s own permanent errors (bucket, keys, query) end a run Failed. An `operator`'s
 * fault (login, permissions, relations, key ring, certificates, clock, full disk) concerns all exports: runs wait until it
 * is fixed. `none`: an outage or a bug, which is retried.
 */
export type ErrorOwner = 'tenant' | 'operator' | 'none';

/** The runs that a recovery exports again: those that ended since a time (null: ever), up to its request (ISO 8601). */
export interface FailureTime {
  readonly since: string | null;
  readonly until: string;
}
