import type { Settings } from '../config/settings.ts';

/**
 * Decisions and data are apart, so that a flood of rows never keeps a pause waiting; so is the upkeep, so that buckets
 * which hang keep no export waiting, and queries, of which people wait for the answers.
 */
export const taskQueues = ({ EXPORTD_TASK_QUEUE }: Pick<Settings, 'EXPORTD_TASK_QUEUE'>) => ({
  control: `${EXPORTD_TASK_QUEUE}-control`,
  export: `${EXPORTD_TASK_QUEUE}-export`,
  upkeep: `${EXPORTD_TASK_QUEUE}-upkeep`,
  query: `${EXPORTD_TASK_QUEUE}-query`,
});

/**
 * How long a worker may hold a workflow task before another gets it: short, since it is also how long an export stands
 * still after its worker was killed. Local activities that take longer renew it.
 */
export const workflowTaskTimeout = '3s';

/** Milliseconds that one request to Temporal may take, its repetitions included; whoever asked decides what then. */
export const requestPatienceMs = 5_000;
