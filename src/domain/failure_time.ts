/** When the runs ended that a recovery exports again: since a time (null: ever), up to its request (both ISO 8601). */
export interface FailureTime {
  readonly since: string | null;
  readonly until: string;
}
