/** Input of a delivery. The notification and the webhook are in the control database. */
export interface NotificationInput {
  readonly delivery_id: string;
  readonly task_queue: string;
  /** Limit of one attempt. */
  readonly timeout_ms: number;
}
