/**
 * Timeouts for stacks whose servers all run. On a busy machine a late response must not become a 503 or a lost
 * statement. Tests that stop a server set shorter timeouts.
 */
export const generousTimeouts = {
  EXPORTD_COMMAND_TIMEOUT: '60s',
  EXPORTD_CONTROL_CONNECT_TIMEOUT: '60s',
  EXPORTD_QUERY_CANCEL_TIMEOUT: '60s',
  EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '60s',
};

/**
 * Timeouts for stacks whose workers are neither killed nor paused, so no test waits for a failover. With shorter ones a
 * busy machine loses tasks, repeats them, and falls further behind.
 */
export const stableWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT: '30s',
  EXPORTD_WORKFLOW_TASK_TIMEOUT: '30s',
};

/** Timeouts for stacks whose workers are killed or paused: failover takes 10 s, and a worker that stalls for less keeps its tasks. */
export const failoverWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT: '10s',
  EXPORTD_WORKFLOW_TASK_TIMEOUT: '10s',
};
