import {
  accountList,
  baseUrl,
  count,
  databaseUrl,
  duration,
  flag,
  headerName,
  networkList,
  oneOf,
  optionalCount,
  privateNetworks,
  proxyBypasses,
  proxyUrl,
  secret,
  size,
  text,
  optionalDuration,
  url,
} from './value_types.ts';

/** Where the servers are. */
export const servers = {
  DATABASE_URL: databaseUrl({ error: 'missing' })
    .describe('Control database: journal, commands and read models.')
    .meta({ when: 'It is required.' }),
  SOURCE_DATABASE_URL: databaseUrl()
    .optional()
    .describe('Database that events and persons are read from. Default: `DATABASE_URL`.')
    .meta({ when: "The rows are in another database than exportd's own tables." }),
  SOURCE_PRIMARY_DATABASE_URL: databaseUrl()
    .optional()
    .describe(
      'Primary of the source. Required if `SOURCE_DATABASE_URL` is a standby: only a primary knows its open transactions.',
    ),
  EXPORTD_QUERY_DATABASE_URL: databaseUrl()
    .optional()
    .describe(
      'The source, with the role of queries that `exportd query setup` creates. Default: the role of `SOURCE_DATABASE_URL`.',
    )
    .meta({ when: 'Users may send queries.' }),
  EXPORTD_CONTROL_CONNECT_TIMEOUT: duration('5s', { min: '100ms' }).describe(
    'Timeout of a new connection to the control database.',
  ),
  EXPORTD_CONTROL_STATEMENT_TIMEOUT: duration('30s', { min: '100ms' }).describe(
    'Timeout of a statement on the control database, which is then retried.',
  ),
};

/** How a process runs and what it logs. */
export const process = {
  EXPORTD_LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info').describe(
    'Minimum level of the log lines on stderr.',
  ),
  EXPORTD_LOG_RETENTION: duration('30d', { min: '1ms', max: '36500d' }).describe(
    'How long the database keeps run logs, delivered notifications and answers to what people asked.',
  ),
  EXPORTD_HISTORY_RETENTION: optionalDuration({ min: '30d', max: '36500d' })
    .describe(
      'How long the database keeps runs, their logs, backfills and commands after their end. The row of the interval stays. Unset: no limit.',
    )
    .meta({ when: 'The control database must not grow without a limit.' }),
  EXPORTD_DELETED_EXPORT_RETENTION: optionalDuration({ min: '1d', max: '36500d' }).describe(
    'How long the database keeps everything of a deleted export. Its files in the bucket stay. Unset: no limit.',
  ),
  EXPORTD_AUDIT_RETENTION: duration('400d', { min: '1d', max: '36500d' }).describe(
    'How long the database keeps who changed what.',
  ),
  EXPORTD_OLD_READ_MODEL_RETENTION: duration('1d', { min: '0s', max: '36500d' }).describe(
    'How long read models stay in the database after `exportd migrate` switched to a newer version, to go back.',
  ),
  EXPORTD_SHUTDOWN_TIMEOUT: duration('15s', { min: '11s', max: '1h' }).describe(
    "A process ends this long after SIGTERM. Until 10 s before, a worker lets its work finish. The supervisor's grace period must be longer.",
  ),
  EXPORTD_RECONCILE_INTERVAL: duration('1m', { min: '100ms' }).describe(
    'How often the reconciler compares the journal with Temporal and starts missing workflows.',
  ),
  EXPORTD_WORKER_HTTP_HOST: text('127.0.0.1').describe(
    "Address of a worker's `/livez`, `/readyz` and `/metrics`. They need no key: keep users away.",
  ),
  EXPORTD_WORKER_HTTP_PORT: optionalCount({ min: 0, max: 65_535 }).describe(
    'Its port, another for each worker of a machine. `0` chooses a free one, which the log names. Unset: the worker does not listen.',
  ),
  EXPORTD_METRICS_PER_EXPORT: flag(false).describe(
    'Whether metrics have the labels `project_id` and `batch_export_id`: about 20 series for each export.',
  ),
};

/** Where traces go. The SDK of OpenTelemetry reads its other settings from the environment. */
export const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: url()
    .optional()
    .describe(
      "Base URL of a collector of traces (OTLP over HTTP). OpenTelemetry's other variables have an effect too. Unset: no traces.",
    ),
};

/** Proxies between exportd and S3 servers, webhooks, collectors and models. */
export const proxies = {
  HTTPS_PROXY: proxyUrl()
    .optional()
    .describe(
      'Proxy for requests to `https://` URLs, such as `http://user:password@proxy:3128`. [What goes through it](#variables-of-the-process).',
    ),
  HTTP_PROXY: proxyUrl().optional().describe('The same for `http://` URLs.'),
  NO_PROXY: proxyBypasses()
    .optional()
    .describe(
      'Hosts that are reached without a proxy, separated by commas: `s3.internal,.example.com,10.0.0.0/8`. A name includes the names below it.',
    ),
};

/** Secrets and what the destinations of users may reach. */
export const security = {
  EXPORTD_ENCRYPTION_KEYS: secret()
    .optional()
    .describe(
      'Keys of 32 bytes in base64, separated by commas. The first encrypts, all decrypt: `id:base64`, or `id:public:base64` for servers and `id:private:base64` for workers.',
    )
    .meta({
      when: 'Servers and workers require it: `exportd secrets create`. To rotate, add a key in front.',
    }),
  EXPORTD_KEY_MAX_LIFETIME: optionalDuration({ min: '1h', max: '36500d' }).describe(
    'How long a new API key lives at most. Existing keys keep their expiry. Unset: a key may have no expiry.',
  ),
  EXPORTD_SESSION_LIFETIME: duration('30d', { min: '5m', max: '365d' }).describe(
    'How long a browser stays signed in to the console.',
  ),
  EXPORTD_SESSION_IDLE_TIMEOUT: duration('3d', { min: '5m', max: '365d' }).describe(
    'How long it stays signed in without a request.',
  ),
  EXPORTD_ALLOW_PRIVATE_ENDPOINTS: privateNetworks('false')
    .describe(
      'Private networks that destinations and webhooks may point at, separated by commas, such as `10.20.0.0/16,fd00:12::/64`. `loopback` is this machine, `true` all private networks and loopback. Link-local addresses and metadata services of clouds are never allowed.',
    )
    .meta({ when: 'The S3 server or webhooks are in your own network: list its addresses only.' }),
  EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: flag(false).describe(
    "Whether destinations in AWS without keys and role use the machine's credentials: every project can then write wherever the machine can.",
  ),
  EXPORTD_ROLE_ACCOUNTS: accountList()
    .optional()
    .describe(
      'AWS accounts, separated by commas, whose roles (`role_arn`) the credentials of the machine assume. Default: all but its own.',
    ),
};

/** The HTTP API and its limits. */
export const httpApi = {
  EXPORTD_HOST: text('127.0.0.1')
    .describe('Address that the HTTP server listens on.')
    .meta({ when: 'Other machines send requests.' }),
  EXPORTD_PORT: count(8_000, { min: 0, max: 65_535 }).describe(
    'Port of the HTTP server. `0` chooses a free one.',
  ),
  EXPORTD_BASE_URL: baseUrl()
    .optional()
    .describe(
      'Public base URL, for `next`, `previous` and `Location`. It has the path that a [proxy](../http/README.md#behind-a-proxy) serves exportd at, if any. Unset: the address that the request was sent to.',
    ),
  EXPORTD_TRUSTED_PROXIES: networkList()
    .optional()
    .describe(
      'Addresses and networks (`10.0.0.0/8`) of proxies, separated by commas, whose `X-Forwarded-For`, `-Proto` and `-Host` are believed.',
    )
    .meta({
      when: 'The server is behind a proxy: without it, all users share one address, and its limit of failed authentications.',
    }),
  EXPORTD_USER_HEADER: headerName()
    .optional()
    .describe(
      'Header in which `EXPORTD_TRUSTED_PROXIES` send the e-mail address of the signed-in user. They must replace that of clients. The audit trail and `created_by` name that user; rights stay those of the key.',
    ),
  EXPORTD_MONITORING_HOST: text('127.0.0.1').describe(
    "Address of the server's `/livez`, `/readyz` and `/metrics`. They need no key: keep users away.",
  ),
  EXPORTD_MONITORING_PORT: optionalCount({ min: 0, max: 65_535 }).describe(
    'Its port. `0` chooses a free one, which the log names. Unset: the server has no `/metrics`.',
  ),
  EXPORTD_CONSOLE: flag(true).describe(
    'Whether the server serves the console at `/` and accepts its cookie.',
  ),
  EXPORTD_HTTP_MAX_BODY_SIZE: size('1MiB', { min: '1KiB', max: '64MiB' }).describe(
    'Maximum size of a request body.',
  ),
  EXPORTD_HTTP_REQUEST_TIMEOUT: duration('30s', { min: '1s' }).describe(
    'How long a client may take to send a request, its body included. Then its connection is closed.',
  ),
  EXPORTD_MAX_FAILED_AUTHENTICATIONS: count(30).describe(
    'Invalid API keys that an address may send per minute before it gets 429. Valid keys always pass.',
  ),
  EXPORTD_MAX_EXPORTS_PER_PROJECT: count(10_000).describe(
    'Maximum batch exports of a project that are not deleted.',
  ),
  EXPORTD_COMMAND_TIMEOUT: duration('10s').describe(
    'How long the API waits for the outcome of a command before it responds with 202.',
  ),
  EXPORTD_JOB_WAIT_TIMEOUT: duration('50s').describe(
    'How long the API waits for a worker, such as for the check of a table, before it responds with 202. A proxy has to wait longer.',
  ),
  EXPORTD_DRY_RUN_TIMEOUT: duration('30s', { min: '100ms' }).describe(
    'How long a dry run of a backfill may count rows. After that it responds without row counts.',
  ),
  EXPORTD_DESTINATION_TEST_TIMEOUT: duration('10s', { min: '100ms' }).describe(
    'Timeout of a destination test, all steps together.',
  ),
};
