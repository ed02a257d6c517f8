import type { Settings } from '../config/settings.ts';

/**
 * The task queues of a deployment. Decisions are separate from exports, so that a pause never waits for rows; maintenance
 * is separate, so that buckets that hang delay no export; and queries, because people wait for their results.
 */
export const taskQueues = ({ EXPORTD_TASK_QUEUE_PREFIX }: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>) => ({
  control: `${EXPORTD_TASK_QUEUE_PREFIX}-control`,
  export: `${EXPORTD_TASK_QUEUE_PREFIX}-export`,
  maintenance: `${EXPORTD_TASK_QUEUE_PREFIX}-maintenance`,
  query: `${EXPORTD_TASK_QUEUE_PREFIX}-query`,
});

/** The settings of every execution: its task queue and its workflow task timeout. */
export type ExecutionSettings = Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX' | 'EXPORTD_WORKFLOW_TASK_TIMEOUT'>;
