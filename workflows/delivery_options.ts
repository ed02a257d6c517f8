import type { ActivityOptions } from '@temporalio/workflow';
import type { NotificationInput } from '../src/contract/notification_input.ts';

/** Deliveries that a worker sends at the same time. Receivers that hang must not delay maintenance for long. */
export const maxConcurrentDeliveries = 16;

/**
 * Options of one attempt to deliver a notification. The activity fails only when the control database or the worker
 * does. An unreachable receiver is an outcome, and the workflow waits before the next attempt.
 */
export const deliveryOptions = ({ task_queue, timeout_ms }: NotificationInput): ActivityOptions => ({
  taskQueue: task_queue,
  startToCloseTimeout: timeout_ms,
  retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
});
