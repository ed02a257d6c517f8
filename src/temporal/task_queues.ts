import type { Settings } from '../config/settings.ts';

/**
 * The task queues of a deployment. Decisions are separate from exports, so that a pause never waits for rows; maintenance
 * is separate, so that buckets that hang delay no export; and jobs and queries, because people wait for their results.
 */
export const taskQueues = ({ EXPORTD_TASK_QUEUE_PREFIX }: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>) => ({
  control: `${EXPORTD_TASK_QUEUE_PREFIX}-control`,
  export: `${EXPORTD_TASK_QUEUE_PREFIX}-export`,
  maintenance: `${EXPORTD_TASK_QUEUE_PREFIX}-maintenance`,
  query: `${EXPORTD_TASK_QUEUE_PREFIX}-query`,
  jobs: `${EXPORTD_TASK_QUEUE_PREFIX}-jobs`,
});

/**
 * Temporal's priority keys of workflows, whose activities inherit them; other workflows have its default of 3. Within a
 * priority, projects take turns. Schedules come first, or those outside the cache would start their runs after the next mark.
 * A server without this feature (`matching.useNewMatcher`, `matching.enableFairness`) serves tasks in order of arrival.
 */
export const taskPriorities = { schedule: 1, scheduled: 2, backfill: 4 } as const;

/** The settings of every execution: its task queue and its workflow task timeout. */
export type ExecutionSettings = Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX' | 'EXPORTD_WORKFLOW_TASK_TIMEOUT'>;
