/** Input of a background query: ids and limits. Its text, rows and errors stay in PostgreSQL. */
export interface BackgroundQueryInput {
  readonly execution_id: string;
  readonly task_queue: string;
  /** Limit of one attempt. */
  readonly timeout_ms: number;
  readonly heartbeat_timeout_ms: number;
}
