import { count, duration, secret, size, text, url } from './value_types.ts';

/** What a query may cost. */
export const queries = {
  EXPORTD_QUERIES_PER_HOUR: count(120, { max: 2_147_483_647 }).describe(
    'Requests to the query endpoint that the API keys of a project may send in any hour.',
  ),
  EXPORTD_CONSOLE_QUERIES_PER_HOUR: count(1_200, { max: 2_147_483_647 }).describe(
    'The same for each person at the console, in each project.',
  ),
  EXPORTD_QUERY_MAX_ROWS: count(10_000, { max: 1_000_000 }).describe('Maximum rows of a response.'),
  EXPORTD_QUERY_MAX_RESULT_SIZE: size('16MiB', { min: '1KiB', max: '256MiB' }).describe(
    'Maximum size of the results in a response.',
  ),
  EXPORTD_QUERY_THREAD_MEMORY: size('512MiB', { min: '64MiB', max: '16GiB' }).describe(
    'Maximum heap of a thread that computes a query (`result_too_large` beyond it), at least 32 times `EXPORTD_QUERY_MAX_RESULT_SIZE`. There are as many threads as slots.',
  ),
  EXPORTD_QUERY_WORK_MEM: size('32MiB', { min: '64KiB', max: '1024GiB' }).describe(
    "PostgreSQL's `work_mem` for queries. A statement with more than 8 sorts, hash tables and aggregates gives each less.",
  ),
  EXPORTD_QUERY_TEMP_FILE_LIMIT: size('1GiB', { min: '1MiB', max: '1024GiB' }).describe(
    "PostgreSQL's `temp_file_limit` of a query, if its role may set it; `exportd doctor` checks that.",
  ),
  EXPORTD_QUERY_TIMEOUT: duration('1m', { min: '100ms' }).describe(
    'Timeout of a query that its caller waits for.',
  ),
  EXPORTD_QUERY_ASYNC_TIMEOUT: duration('10m', { min: '100ms' }).describe(
    'Timeout of a query in the background.',
  ),
  EXPORTD_QUERY_SLOW_TIME: duration('10s', { min: '1ms' }).describe(
    'A query that takes longer is a warning in the log and counts as `exportd_slow_queries_total`.',
  ),
  EXPORTD_QUERY_SLOTS: count(6).describe(
    'Queries that a process runs at the same time, each on its own connection. The last free slot is kept for a project that runs none.',
  ),
  EXPORTD_QUERY_PROJECT_SLOTS: count(4).describe('How many of `EXPORTD_QUERY_SLOTS` a project may use.'),
  EXPORTD_QUERY_KEY_SLOTS: count(3).describe('How many of them the requests with one API key may use.'),
  EXPORTD_QUERY_PROJECT_QUEUE_SIZE: count(50).describe(
    'How many requests of one project wait for a slot, and how many unfinished background queries it has. With more, 429.',
  ),
  EXPORTD_QUERY_QUEUE_TIMEOUT: duration('30s', { min: '1ms' }).describe(
    'How long a request waits for a slot before it gets 429 or 503.',
  ),
  EXPORTD_QUERY_CANCEL_TIMEOUT: duration('5s', { min: '100ms' }).describe(
    'How long a request to cancel a query waits for the statement to end in PostgreSQL.',
  ),
  EXPORTD_QUERY_HEARTBEAT_TIMEOUT: duration('10s', { min: '500ms' }).describe(
    'A query without a heartbeat for this long is run again by another worker.',
  ),
  EXPORTD_QUERY_CACHE_TTL: duration('7d', { min: '100ms' }).describe('How long cached results are kept.'),
  EXPORTD_DRAFT_SQL_URL: url()
    .optional()
    .describe(
      'Base URL of an OpenAI-compatible API that drafts queries, such as `https://host/v1`. Unset: exportd drafts them by rules.',
    ),
  EXPORTD_DRAFT_SQL_MODEL: text('default').describe('Model that is requested there.'),
  EXPORTD_DRAFT_SQL_API_KEY: secret().optional().describe('Bearer token that is sent there.'),
  EXPORTD_DRAFT_SQL_TIMEOUT: duration('20s', { min: '100ms' }).describe(
    "Timeout of each request to the model, and of reading the names in a project's data.",
  ),
};
