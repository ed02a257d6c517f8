/**
 * Settings of stacks whose servers are all there: on a busy machine a late answer must not become a 503 or a lost
 * statement. Tests in which a server is away have shorter ones of their own.
 */
export const patience = {
  EXPORTD_COMMAND_TIMEOUT_MS: '60000',
  EXPORTD_CONTROL_CONNECT_TIMEOUT_MS: '60000',
  EXPORTD_QUERY_CANCEL_TIMEOUT_MS: '60000',
  EXPORTD_TEMPORAL_REQUEST_TIMEOUT_MS: '60000',
};

/**
 * Settings of stacks none of whose workers is killed or stands still on purpose: nobody waits until one is given up. A
 * busy machine would lose its tasks otherwise, and do them again, until it did nothing else.
 */
export const lastingWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT_MS: '30000',
  EXPORTD_WORKFLOW_TASK_TIMEOUT_MS: '30000',
};

/** The same where one is: whoever takes over waits for it, but a worker that stalls for some seconds keeps its tasks. */
export const takenOverWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT_MS: '10000',
  EXPORTD_WORKFLOW_TASK_TIMEOUT_MS: '10000',
};
