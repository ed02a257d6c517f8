import type { Settings } from '../config/settings.ts';

/** Numbers of slots, and how many queries may wait for one, and how long. */
export interface SlotLimits {
  readonly slots: number;
  readonly projectSlots: number;
  readonly keySlots: number;
  readonly queueSize: number;
  readonly projectQueueSize: number;
  /** Milliseconds. */
  readonly timeoutMs: number;
}

export type SlotSettings = Pick<
  Settings,
  | 'EXPORTD_QUERY_SLOTS'
  | 'EXPORTD_QUERY_PROJECT_SLOTS'
  | 'EXPORTD_QUERY_KEY_SLOTS'
  | 'EXPORTD_QUERY_QUEUE_SIZE'
  | 'EXPORTD_QUERY_PROJECT_QUEUE_SIZE'
  | 'EXPORTD_QUERY_QUEUE_TIMEOUT'
  | 'EXPORTD_QUERY_ASYNC_QUEUE_TIMEOUT'
>;

/** The limits of a server process, whose clients wait. */
export const foregroundLimits = (settings: SlotSettings): SlotLimits => ({
  slots: settings.EXPORTD_QUERY_SLOTS,
  projectSlots: settings.EXPORTD_QUERY_PROJECT_SLOTS,
  keySlots: settings.EXPORTD_QUERY_KEY_SLOTS,
  queueSize: settings.EXPORTD_QUERY_QUEUE_SIZE,
  projectQueueSize: settings.EXPORTD_QUERY_PROJECT_QUEUE_SIZE,
  timeoutMs: settings.EXPORTD_QUERY_QUEUE_TIMEOUT,
});

/**
 * The limits of a worker. It does not tell keys apart, and must run every query that it receives, so its queue has no
 * limit.
 */
export const backgroundLimits = (settings: SlotSettings): SlotLimits => ({
  slots: settings.EXPORTD_QUERY_SLOTS,
  projectSlots: settings.EXPORTD_QUERY_PROJECT_SLOTS,
  keySlots: Infinity,
  queueSize: Infinity,
  projectQueueSize: Infinity,
  timeoutMs: settings.EXPORTD_QUERY_ASYNC_QUEUE_TIMEOUT,
});
