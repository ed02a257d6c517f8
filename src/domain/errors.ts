/** Why a command was refused, in the terms of the HTTP interface, so that the facade can answer without guessing. */
export type RejectionCode =
  | 'invalid_input'
  | 'required'
  | 'not_found'
  | 'conflict'
  | 'too_many_concurrent_backfills'
  /** A fault of exportd itself: the command is at no fault, and repeating it leads to the same. */
  | 'internal_error';

/**
 * A command that breaks a rule of the domain. It is an answer, not a fault: it is recorded with the command and
 * never retried.
 */
export class CommandRejected extends Error {
  override readonly name = 'CommandRejected';
  readonly code: RejectionCode;
  /** The member of the request that is at fault, its path joined by `__`, or null. */
  readonly attr: string | null;

  constructor(code: RejectionCode, detail: string, attr: string | null = null) {
    super(detail);
    this.code = code;
    this.attr = attr;
  }
}
