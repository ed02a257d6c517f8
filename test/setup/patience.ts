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
