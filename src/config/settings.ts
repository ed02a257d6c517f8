import { z } from 'zod';

/** The longest that timers and PostgreSQL's own time limits can wait: about 24 days. */
const longestWaitMs = 2_147_483_647;

/** A whole number of milliseconds, at least `minimum`. Every wait of the product is one, so that tests can shorten it. */
const milliseconds = (fallback: number, minimum = 0) =>
  z.coerce.number().int().min(minimum).max(longestWaitMs).default(fallback);
/** The same without a fallback: a default inside would stand in for the missing value. */
const optionalMilliseconds = (minimum: number) =>
  z.coerce.number().int().min(minimum).max(longestWaitMs).optional();
const count = (fallback: number, minimum = 1, maximum = Number.MAX_SAFE_INTEGER) =>
  z.coerce.number().int().min(minimum).max(maximum).default(fallback);
const switchOf = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'])
    .default(fallback ? 'true' : 'false')
    .transform((value) => value === 'true' || value === '1');

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/**
 * Every setting of exportd, read once at the start of a process. Variables without the prefix are the usual names of
 * the servers that exportd talks to.
 */
const schema = z.object({
  /** The control database: journal, commands, projections. */
  DATABASE_URL: z.string().min(1),
  /** Where events and persons are read; the control database when it is not set. */
  SOURCE_DATABASE_URL: z.string().min(1).optional(),
  /** The primary of the source, where the source is a standby: which transactions are open can be seen only there. */
  SOURCE_PRIMARY_DATABASE_URL: z.string().min(1).optional(),
  TEMPORAL_ADDRESS: z.string().min(1).default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  /** Base address of the Temporal UI, for links in answers; no links when it is not set. */
  TEMPORAL_UI: z.url().optional(),

  EXPORTD_HOST: z.string().default('127.0.0.1'),
  EXPORTD_PORT: z.coerce.number().int().min(0).max(65_535).default(8_000),
  /** The address that answers name in `next`, `previous` and `Location`; that of the request when it is not set. */
  EXPORTD_BASE_URL: z.url().optional(),
  EXPORTD_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** `id:base64` pairs of 32-byte keys, separated by commas; the first encrypts, all decrypt. */
  EXPORTD_ENCRYPTION_KEYS: z.string().min(1).optional(),
  /** Whether destinations and webhooks may point at loopback and private addresses; `loopback` allows the former alone. */
  EXPORTD_ALLOW_PRIVATE_ENDPOINTS: z.literal('loopback').or(switchOf(false)).default(false),
  /**
   * Whether a destination without keys and without a role may use the credentials of the machine that exportd runs on.
   * Roles are assumed with those in any case, as far as the machine is allowed to.
   */
  EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: switchOf(true),
  /**
   * A file with the workflows that `exportd bundle` of the same version wrote. Without it a worker bundles them by itself
   * each time it starts, which takes seconds.
   */
  EXPORTD_WORKFLOW_BUNDLE: z.string().min(1).optional(),
  /** Prefix of both task queues, so that several deployments can share a namespace. */
  EXPORTD_TASK_QUEUE: z.string().min(1).default('exportd'),

  EXPORTD_EVENTS_RELATION: z.string().default('public.events'),
  EXPORTD_PERSONS_RELATION: z.string().default('public.persons'),
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: z.string().default('public.person_distinct_ids'),

  /** How long one request to Temporal may take, its repetitions included. */
  EXPORTD_TEMPORAL_REQUEST_TIMEOUT_MS: milliseconds(5 * second, 100),
  /** How long it may take to get a connection to the control database. */
  EXPORTD_CONTROL_CONNECT_TIMEOUT_MS: milliseconds(5 * second, 100),

  /** How long the facade waits for a command's outcome before it answers 202. */
  EXPORTD_COMMAND_TIMEOUT_MS: milliseconds(10 * second),
  /** How often a waiting facade looks for the outcome itself, should a notification be lost. */
  EXPORTD_COMMAND_POLL_MS: milliseconds(500, 10),
  /**
   * How long one statement on the control database may take. A connection that is silent for a quarter longer counts as
   * lost: what it was to do is done again on another.
   */
  EXPORTD_CONTROL_STATEMENT_TIMEOUT_MS: milliseconds(30 * second, 100),
  EXPORTD_RECONCILE_INTERVAL_MS: milliseconds(minute, 100),
  /** How many intervals without rows a worker publishes at once beside the exports, which then need no slot; 0 for none. */
  EXPORTD_EMPTY_PUBLISH_PLACES: count(8, 0),
  /** For how long that is tried before a slot of the exports is taken. */
  EXPORTD_EMPTY_PUBLISH_MS: milliseconds(1_500, 10),
  /**
   * How long after the cut, by the source's clock, a run begins to look for open transactions. One that comes sooner
   * waits for so long from then on, so that what jitter has spread stays so.
   */
  EXPORTD_SETTLE_MS: milliseconds(30 * second),
  /** How often the barrier on open transactions is polled. */
  EXPORTD_SETTLE_POLL_MS: milliseconds(2 * second, 10),
  /** The longest a run waits for open transactions; the interval's own length when that is shorter. */
  EXPORTD_SETTLE_MAX_MS: milliseconds(10 * minute),
  EXPORTD_JITTER_LONG_MS: milliseconds(5 * minute),
  /** Jitter of intervals below an hour, as a fraction of the interval. */
  EXPORTD_JITTER_SHORT_FRACTION: z.coerce.number().min(0).max(1).default(0.2),
  EXPORTD_MAX_CONCURRENT_RUNS: count(3),
  EXPORTD_BACKFILL_CONCURRENCY: count(3),
  EXPORTD_MAX_BACKFILL_INTERVALS: count(100_000),
  EXPORTD_MAX_BACKFILLS_PER_PROJECT: count(20),
  /** How long a dry run of a backfill may count rows; it is answered without them then. */
  EXPORTD_DRY_RUN_TIMEOUT_MS: milliseconds(30 * second, 100),
  EXPORTD_RETRY_INITIAL_MS: milliseconds(minute),
  EXPORTD_RETRY_MAX_MS: milliseconds(hour),
  EXPORTD_RETRY_LIMIT: count(10, 0),
  /** After so many scheduled runs in a row that are Failed an export pauses by itself, and so does a backfill; 0 for never. */
  EXPORTD_PAUSE_AFTER_FAILURES: count(3, 0),
  /** Execution timeout of a run; by the interval (design, section 4) when it is not set. */
  EXPORTD_RUN_TIMEOUT_MS: optionalMilliseconds(1_000),
  /** How long an activity goes on retrying transient errors; half the execution timeout when it is not set. */
  EXPORTD_ACTIVITY_BUDGET_MS: optionalMilliseconds(1_000),
  EXPORTD_ACTIVITY_RETRY_INITIAL_MS: milliseconds(second, 10),
  EXPORTD_ACTIVITY_RETRY_MAX_MS: milliseconds(minute, 10),
  EXPORTD_HEARTBEAT_TIMEOUT_MS: milliseconds(30 * second, 500),
  /**
   * How long a worker may hold a workflow task, and how long one may wait for the worker that has its workflow in memory,
   * before another gets it: also how long an export stands still after its worker was killed. A worker with more to do
   * than it can loses its tasks when it is too short. Local activities that take longer renew it.
   */
  EXPORTD_WORKFLOW_TASK_TIMEOUT_MS: milliseconds(10 * second, 1_000),
  /** How often it is looked what there is to clean up in buckets and to count again in the source. */
  EXPORTD_UPKEEP_INTERVAL_MS: milliseconds(minute, 100),
  /** How long files stay in the bucket after another generation took their place: somebody may still be reading them. */
  EXPORTD_GRACE_MS: milliseconds(hour),
  /** The same of uploads and files that no manifest ever named: an attempt may not know yet that its run is over. */
  EXPORTD_SWEEP_AFTER_MS: milliseconds(5 * minute),
  /** For how long removing an object is tried again, such as in a bucket that cannot be reached any more. */
  EXPORTD_SWEEP_GIVE_UP_MS: milliseconds(7 * 24 * hour),
  /** How long after an interval's end its events are counted again, in search of late rows; 0 for not at all. */
  EXPORTD_RECHECK_FIRST_MS: milliseconds(hour),
  /** The same for the last time. */
  EXPORTD_RECHECK_SECOND_MS: milliseconds(24 * hour),
  /** The wait after the first failed attempt to tell a webhook something; it doubles with each one. */
  EXPORTD_WEBHOOK_RETRY_INITIAL_MS: milliseconds(10 * second, 10),
  EXPORTD_WEBHOOK_RETRY_MAX_MS: milliseconds(hour, 10),
  /** For how long it is tried again to tell a webhook something. */
  EXPORTD_WEBHOOK_GIVE_UP_MS: milliseconds(24 * hour),
  /** The longest that one request to a webhook may take. */
  EXPORTD_WEBHOOK_TIMEOUT_MS: milliseconds(10 * second, 100),
  /** How long lines of the log and notifications are kept, in milliseconds. */
  EXPORTD_LOG_RETENTION_MS: count(30 * 24 * hour),
  /** A schedule or backfill workflow continues as new after this many commands. */
  EXPORTD_CONTINUE_AS_NEW_COMMANDS: count(200),

  /** Bounds of one page of the source. */
  EXPORTD_PAGE_ROWS: count(100_000),
  EXPORTD_PAGE_BYTES: count(16 * 1024 * 1024, 1_024),
  /** How long one statement on the source may take: a page, a count, a look at the barrier. */
  EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS: milliseconds(5 * minute, 100),
  /** Size of the first part of a multipart upload; S3 allows 5 MiB, less only for the last, to 5 GiB. */
  EXPORTD_PART_BYTES: count(5 * 1024 * 1024, 5 * 1024 * 1024, 5 * 1024 ** 3),
  /** A run is handed over to a fresh execution, and a fresh row, after this many parts. */
  EXPORTD_PARTS_PER_EXECUTION: count(1_000),
  /** An interval of more rows than this is cut into ranges of so many, which are exported side by side. */
  EXPORTD_RANGE_ROWS: count(10_000_000),
  /** With `on_bad_row: reject`, a run fails once more rows than this had to be left out. */
  EXPORTD_REJECTED_ROWS_MAX: count(10_000, 0),
  /**
   * How many executions of workflows a worker keeps in memory, each of about half a megabyte; one more is read from its
   * history when it goes on. As many as a tenth of the memory holds when it is not set, 200 to 2,000.
   */
  EXPORTD_CACHED_WORKFLOWS: z.coerce.number().int().min(2).optional(),
  /** How many intervals, or ranges of them, a worker exports at once. */
  EXPORTD_EXPORT_SLOTS: count(4),
  /** How many of them may be of one export, so that its backlog never keeps all others waiting; as many as there are when not set. */
  EXPORTD_SLOTS_PER_EXPORT: z.coerce.number().int().min(1).optional(),
  /** An attempt that has not got on for this long lends its slot to another: it waits for a server. */
  EXPORTD_SLOT_LENT_AFTER_MS: milliseconds(10 * second, 100),
  /** How many slots may be lent at once; each attempt under way needs its memory, as EXPORTD_MEMORY_BYTES says. */
  EXPORTD_SLOTS_LENT: count(12, 0),
  EXPORTD_ENCODER_THREADS: count(2),
  /**
   * What rows and encoded bytes of all exports of a process together should take of its memory. Beyond it nothing is
   * read ahead and parts are sent one by one; every export has a page, its encoded bytes and a part in any case.
   */
  EXPORTD_MEMORY_BYTES: count(64 * 1024 * 1024, 1024 * 1024),
  /** Longest silence on a connection to S3 before the request counts as lost. */
  EXPORTD_S3_REQUEST_TIMEOUT_MS: milliseconds(30 * second, 100),
  /** How long one request to S3 is tried again through an outage before the activity fails and is retried as a whole. */
  EXPORTD_S3_PATIENCE_MS: milliseconds(5 * minute),
  /** Requests to the query endpoint that a project has in any hour. */
  EXPORTD_QUERIES_PER_HOUR: count(120, 1, 2_147_483_647),
  /** The most rows of one answer, whatever a query asks for. */
  EXPORTD_QUERY_ROWS: count(10_000, 1, 1_000_000),
  /** The most bytes of one answer. */
  EXPORTD_QUERY_RESULT_BYTES: count(32 * 1024 * 1024, 1_024, 256 * 1024 * 1024),
  /** The most bytes of a request's body. */
  EXPORTD_BODY_BYTES: count(1024 * 1024, 1_024, 64 * 1024 * 1024),
  /** How long a query may take while its caller waits. */
  EXPORTD_QUERY_TIMEOUT_MS: milliseconds(minute, 100),
  /** The same in the background. */
  EXPORTD_QUERY_ASYNC_TIMEOUT_MS: milliseconds(10 * minute, 100),
  /** Queries that one process runs at once, in a pool of connections of their own. */
  EXPORTD_QUERY_SLOTS: count(4),
  /** How often a process looks whether one of its queries was cancelled. */
  EXPORTD_QUERY_POLL_MS: milliseconds(250, 10),
  /** How long a query that is cancelled may take to end in PostgreSQL before its caller is told that it was cancelled. */
  EXPORTD_QUERY_CANCEL_TIMEOUT_MS: milliseconds(5 * second, 100),
  /** How long the status of a query can be asked for after its end. */
  EXPORTD_QUERY_STATUS_MS: milliseconds(20 * minute, 100),
  /** How long cached answers are kept. */
  EXPORTD_QUERY_CACHE_MS: milliseconds(7 * 24 * hour, 100),
  /** A query whose worker was silent for this long is run by another one. */
  EXPORTD_QUERY_HEARTBEAT_TIMEOUT_MS: milliseconds(10 * second, 500),
  /** Base address of an interface like OpenAI's that drafts queries, such as `https://host/v1`; rules draft them when it is not set. */
  EXPORTD_DRAFT_SQL_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** The model that is asked there. */
  EXPORTD_DRAFT_SQL_MODEL: z.string().min(1).default('default'),
  /** The key that is sent there as a bearer token; none when it is not set. */
  EXPORTD_DRAFT_SQL_API_KEY: z.string().min(1).optional(),
  /** How long reading a project's names may take, and each request to the model. */
  EXPORTD_DRAFT_SQL_TIMEOUT_MS: milliseconds(20 * second, 100),
  /** The longest that all steps of a destination's test may take together. */
  EXPORTD_DESTINATION_TEST_TIMEOUT_MS: milliseconds(10 * second, 100),
});

/** The settings of a process, validated. */
export type Settings = Readonly<z.infer<typeof schema>>;

/** A setting that is unknown or has a bad value; the message names it and says what is expected. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Variables that the launcher and the test set-up read, and that the parts only pass on. */
const launcherVariables = new Set([
  'EXPORTD_DATA_DIR',
  'EXPORTD_CACHE_DIR',
  'EXPORTD_API_KEY',
  'EXPORTD_TEST_FOLDER',
  'EXPORTD_TEST_DATABASE_URL',
  'EXPORTD_TEST_TEMPORAL_ADDRESS',
  'EXPORTD_TEST_S3_ENDPOINT',
  'EXPORTD_TEST_S3_ACCESS_KEY_ID',
  'EXPORTD_TEST_S3_SECRET_ACCESS_KEY',
]);

/**
 * Reads the settings from an environment.
 * @throws SettingsError that names the first bad or unknown `EXPORTD_` variable.
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  for (const name of Object.keys(environment))
    if (name.startsWith('EXPORTD_') && !(name in schema.shape) && !launcherVariables.has(name))
      throw new SettingsError(`There is no setting ${name}.`);
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new SettingsError(
    `The setting ${issue?.path.join('.') ?? '?'} is not usable: ${issue?.message ?? '?'}`,
  );
}
