/**
 * Settings of stacks whose servers are all there: on a busy machine a late answer must not become a 503 or a lost
 * statement. Tests in which a server is away have shorter ones of their own.
 */
export const patience = {
  EXPORTD_COMMAND_TIMEOUT: '60s',
  EXPORTD_CONTROL_CONNECT_TIMEOUT: '60s',
  EXPORTD_QUERY_CANCEL_TIMEOUT: '60s',
  EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '60s',
};

/**
 * Settings of stacks none of whose workers is killed or stands still on purpose: nobody waits until one is given up. A
 * busy machine would lose its tasks otherwise, and do them again, until it did nothing else.
 */
export const lastingWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT: '30s',
  EXPORTD_WORKFLOW_TASK_TIMEOUT: '30s',
};

/** The same where one is: whoever takes over waits for it, but a worker that stalls for some seconds keeps its tasks. */
export const takenOverWorkers = {
  EXPORTD_HEARTBEAT_TIMEOUT: '10s',
  EXPORTD_WORKFLOW_TASK_TIMEOUT: '10s',
};
