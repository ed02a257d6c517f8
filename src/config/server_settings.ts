import { databaseUrl } from './database_url.ts';
import { count, duration, flag, oneOf, optionalCount, secret, size, text, url } from './value_types.ts';

/** Where the servers are. */
export const servers = {
  DATABASE_URL: databaseUrl({ error: 'missing' }).describe(
    'Control database: journal, commands and read models. Required.',
  ),
  SOURCE_DATABASE_URL: databaseUrl()
    .optional()
    .describe('Database that events and persons are read from. Default: `DATABASE_URL`.'),
  SOURCE_PRIMARY_DATABASE_URL: databaseUrl()
    .optional()
    .describe(
      'Primary of the source, if the source is a standby: only a primary knows its open transactions.',
    ),
  EXPORTD_QUERY_DATABASE_URL: databaseUrl()
    .optional()
    .describe(
      'The source, with the role that queries run under. `exportd query setup` creates the role. Default: queries run under the role of `SOURCE_DATABASE_URL`.',
    ),
  EXPORTD_CONTROL_CONNECT_TIMEOUT: duration('5s', { min: '100ms' }).describe(
    'Timeout of a new connection to the control database.',
  ),
  EXPORTD_CONTROL_STATEMENT_TIMEOUT: duration('30s', { min: '100ms' }).describe(
    'Timeout of a statement on the control database. A connection that stays silent a quarter longer is lost: the statement is retried on another one.',
  ),
};

/** How a process runs and what it logs. */
export const process = {
  EXPORTD_LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info').describe(
    'Minimum level of the log lines on stderr.',
  ),
  EXPORTD_LOG_FORMAT: oneOf(['auto', 'json', 'readable'], 'auto').describe(
    'Form of the log lines. `auto`: readable on a terminal, else JSON.',
  ),
  EXPORTD_LOG_RETENTION: duration('30d', { min: '1ms', max: '36500d' }).describe(
    "How long run logs, delivered notifications and reports of the console's verifications are kept in the database.",
  ),
  EXPORTD_SHUTDOWN_TIMEOUT: duration('15s', { min: '11s', max: '1h' }).describe(
    'A process ends this long after SIGTERM at the latest. Until 10 s before, a worker lets exports, deliveries and queries finish; then it stops them, and other workers resume them. Set the grace period of the supervisor (`terminationGracePeriodSeconds`, `TimeoutStopSec`, `stop_grace_period`) longer.',
  ),
  EXPORTD_RECONCILE_INTERVAL: duration('1m', { min: '100ms' }).describe(
    'How often the reconciler compares the journal with Temporal and starts missing workflows.',
  ),
  EXPORTD_WORKER_HTTP_HOST: text('127.0.0.1').describe(
    'Address that a worker serves its `/livez`, `/readyz` and `/metrics` on. They need no key: keep them from your users.',
  ),
  EXPORTD_WORKER_HTTP_PORT: optionalCount({ min: 0, max: 65_535 }).describe(
    'Its port. `0` chooses a free one, which the log names. Default: the worker does not listen, since several workers of a machine need different ports.',
  ),
  EXPORTD_METRICS_PER_EXPORT: flag(false).describe(
    'Whether metrics have the labels `project_id` and `batch_export_id`: about 20 series for each export. By default they are sums and maxima of all exports with the same interval.',
  ),
};

/** Where traces go. The SDK of OpenTelemetry reads its other settings from the environment. */
export const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: url()
    .optional()
    .describe(
      "Base URL of a collector that receives traces by OTLP over HTTP, such as `http://localhost:4318`. OpenTelemetry's other variables have an effect too, for example `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER` and `OTEL_RESOURCE_ATTRIBUTES`. Default: no traces.",
    ),
};

/** Secrets and what the destinations of users may reach. */
export const security = {
  EXPORTD_ENCRYPTION_KEYS: secret()
    .optional()
    .describe(
      '`id:base64` pairs of 32-byte keys, separated by commas. The first encrypts, all decrypt. Required by servers and workers.',
    ),
  EXPORTD_ALLOW_PRIVATE_ENDPOINTS: oneOf(['loopback', 'true', 'false', '1', '0'], 'false')
    .transform((value) => (value === 'loopback' ? value : value === 'true' || value === '1'))
    .meta({ default: 'false' })
    .describe(
      'Whether destinations and webhooks may point at private and loopback addresses. `loopback` allows loopback only.',
    ),
  EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: flag(false).describe(
    "Whether a destination in AWS without keys and without a role may use the credentials of exportd's machine: then every project can write wherever the machine can. Roles are always assumed with those, and with the external id of the project.",
  ),
};

/** The HTTP API and its limits. */
export const httpApi = {
  EXPORTD_HOST: text('127.0.0.1').describe('Address that the HTTP server listens on.'),
  EXPORTD_PORT: count(8_000, { min: 0, max: 65_535 }).describe('Its port. `0` chooses a free one.'),
  EXPORTD_BASE_URL: url()
    .optional()
    .describe('Public base URL, for `next`, `previous` and `Location`. Default: the host of the request.'),
  EXPORTD_CONSOLE: flag(true).describe(
    'Whether the server serves the console at `/` and accepts its cookie. Without it, the API accepts only the header `Authorization`.',
  ),
  EXPORTD_HTTP_MAX_BODY_SIZE: size('1MiB', { min: '1KiB', max: '64MiB' }).describe(
    'Maximum size of a request body.',
  ),
  EXPORTD_COMMAND_TIMEOUT: duration('10s').describe(
    'How long the API waits for the outcome of a command before it responds with 202.',
  ),
  EXPORTD_COMMAND_POLL_INTERVAL: duration('500ms', { min: '10ms' }).describe(
    'How often it polls for the outcome meanwhile, in case a PostgreSQL notification is lost.',
  ),
  EXPORTD_DRY_RUN_TIMEOUT: duration('30s', { min: '100ms' }).describe(
    'How long a dry run of a backfill may count rows. After that it responds without row counts.',
  ),
  EXPORTD_DESTINATION_TEST_TIMEOUT: duration('10s', { min: '100ms' }).describe(
    'Timeout of a destination test, all steps together.',
  ),
};

/** Webhooks to the owners of exports. */
export const webhooks = {
  EXPORTD_WEBHOOK_TIMEOUT: duration('10s', { min: '100ms' }).describe('Timeout of a request to a webhook.'),
  EXPORTD_WEBHOOK_RETRY_INITIAL: duration('10s', { min: '10ms' }).describe(
    'Delay before a delivery is retried. It doubles with each retry.',
  ),
  EXPORTD_WEBHOOK_RETRY_MAX: duration('1h', { min: '10ms' }).describe('Maximum of that delay.'),
  EXPORTD_WEBHOOK_RETRY_BUDGET: duration('24h').describe('How long a delivery is retried.'),
  EXPORTD_OPERATOR_WEBHOOK_URL: url()
    .optional()
    .describe(
      "Webhook of the operator, which is notified once of each operator's fault: what delays runs of all exports, and what to fix. Default: none.",
    ),
  EXPORTD_OPERATOR_WEBHOOK_FORMAT: oneOf(['json', 'slack'], 'json').describe(
    'The form of these messages. `slack` fits an incoming webhook of Slack.',
  ),
  EXPORTD_OPERATOR_WEBHOOK_SECRET: secret()
    .regex(/^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/, 'invalid: write `whsec_` and 24 to 64 bytes in base64')
    .optional()
    .describe('Signs these messages: `whsec_` and 24 to 64 bytes in base64. Default: they are not signed.'),
};
