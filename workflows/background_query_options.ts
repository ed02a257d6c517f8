import type { ActivityOptions } from '@temporalio/workflow';
import type { BackgroundQueryInput } from '../src/contract/background_query_input.ts';

/**
 * Options of running a query. An error of the query is an outcome; the activity fails only when the database or the
 * worker does. Heartbeats detect a killed worker. Waits for a free slot of the worker have no limit;
 * `timeout_ms` includes the wait for one of the project. Both can be cancelled.
 */
export const queryOptions = ({
  task_queue,
  timeout_ms,
  heartbeat_timeout_ms,
}: BackgroundQueryInput): ActivityOptions => ({
  taskQueue: task_queue,
  startToCloseTimeout: timeout_ms,
  heartbeatTimeout: heartbeat_timeout_ms,
  // The workflow ends only after the statement has ended.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: { initialInterval: '200ms', backoffCoefficient: 2, maximumInterval: '10s', maximumAttempts: 20 },
});
