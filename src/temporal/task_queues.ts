import type { Settings } from '../config/settings.ts';

/**
 * Decisions and data are apart, so that a flood of rows never keeps a pause waiting; so is the upkeep, so that buckets
 * which hang keep no export waiting, and queries, of which people wait for the answers.
 */
export const taskQueues = ({ EXPORTD_TASK_QUEUE_PREFIX }: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>) => ({
  control: `${EXPORTD_TASK_QUEUE_PREFIX}-control`,
  export: `${EXPORTD_TASK_QUEUE_PREFIX}-export`,
  maintenance: `${EXPORTD_TASK_QUEUE_PREFIX}-maintenance`,
  query: `${EXPORTD_TASK_QUEUE_PREFIX}-query`,
});

/** What says where executions run, and for how long a worker may hold one of their tasks. */
export type ExecutionSettings = Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX' | 'EXPORTD_WORKFLOW_TASK_TIMEOUT'>;
