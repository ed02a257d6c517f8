import { availableParallelism } from 'node:os';
import * as z from 'zod';
import {
  caBundle,
  count,
  duration,
  fraction,
  machineCount,
  machineSize,
  optionalCount,
  optionalDuration,
  size,
  text,
} from './value_types.ts';

/** The cores that the process may use. */
const cores = availableParallelism();

/** Where and how rows are read. */
export const source = {
  EXPORTD_EVENTS_RELATION: text('public.events').describe('Table or view of the events.'),
  EXPORTD_PERSONS_RELATION: text('public.persons').describe('Table or view of the persons.'),
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: text('public.person_distinct_ids').describe(
    "Table or view of the persons' distinct ids.",
  ),
  EXPORTD_SOURCE_PAGE_ROWS: count(100_000).describe('Maximum rows of one page read from the source.'),
  EXPORTD_SOURCE_PAGE_SIZE: size('8MiB', { min: '1KiB' }).describe(
    'Maximum size of one page read from the source.',
  ),
  EXPORTD_MAX_ROW_SIZE: size('64MiB', { min: '64KiB', max: '64MiB' }).describe(
    'Maximum size of a row of an export. `on_bad_row` of the destination decides about a wider one.',
  ),
  EXPORTD_SOURCE_STATEMENT_TIMEOUT: duration('5m', { min: '100ms' }).describe(
    'Timeout of a statement on the source: a page, a count, a check of the barrier.',
  ),
  EXPORTD_SOURCE_CONNECTIONS: optionalCount({ min: 3 }).describe(
    'Maximum connections of a worker to read rows, and as many to count them; a project uses a third of each. Default: three for each of `EXPORTD_EXPORT_SLOTS`.',
  ),
  EXPORTD_SETTLE_DELAY: duration('30s').describe(
    'How long after the end of its interval a run first checks for open transactions, by the clock of the source.',
  ),
  EXPORTD_SETTLE_POLL_INTERVAL: duration('2s', { min: '10ms' }).describe(
    'How often a run checks again while transactions are open.',
  ),
  EXPORTD_SETTLE_TIMEOUT: duration('10m').describe(
    'How long a run waits for open transactions, at most its interval. Then it exports without their rows (`"settled": false`), and again once they have ended.',
  ),
};

/** When runs start, and when a failed one starts again. */
export const schedules = {
  EXPORTD_JITTER_LONG: duration('5m').describe(
    'Maximum random delay of a scheduled run, for intervals of an hour or longer.',
  ),
  EXPORTD_JITTER_SHORT_FRACTION: fraction(0.2).describe(
    'Maximum random delay of a run of a shorter interval, as a fraction of the interval.',
  ),
  EXPORTD_MAX_CONCURRENT_RUNS: count(3).describe('Maximum concurrent scheduled runs of one export.'),
  EXPORTD_BACKFILL_CONCURRENCY: count(3).describe('Maximum concurrent runs of one backfill.'),
  EXPORTD_REPAIR_CONCURRENCY: count(2, { max: 3 }).describe(
    'Maximum concurrent runs of one export that exportd repeats because of late rows.',
  ),
  EXPORTD_MAX_BACKFILL_INTERVALS: count(100_000).describe('Maximum intervals of one backfill.'),
  EXPORTD_MAX_BACKFILLS_PER_PROJECT: count(20).describe('Maximum unfinished backfills of one project.'),
  EXPORTD_PAUSE_AFTER_FAILURES: count(3, { min: 0 }).describe(
    'Consecutive failed runs after which a schedule or backfill pauses. `0` disables the pause.',
  ),
  EXPORTD_RUN_RETRY_INITIAL: duration('1m').describe(
    'Delay before a `FailedRetryable` run is retried. It doubles with each retry.',
  ),
  EXPORTD_RUN_RETRY_LIMIT: count(10, { min: 0 }).describe('Maximum retries of a run.'),
  EXPORTD_COMPARISON_FIRST: duration('1h').describe(
    'When an interval is first compared with the source after its export. Then after 24 and 168 times as long, then ever later. `0s`: never.',
  ),
  EXPORTD_COMPARISON_MAX_INTERVAL: duration('365d', { min: '1ms', max: '3650d' }).describe(
    'Maximum time between two comparisons of an interval.',
  ),
  EXPORTD_COMPARISON_ROWS_PER_SECOND: count(50_000).describe(
    'Rows of the source that comparisons read per second, on average.',
  ),
};

/** Workflows and activities on Temporal. */
export const workflows = {
  EXPORTD_RUN_TIMEOUT: optionalDuration({ min: '1s' }).describe(
    'Maximum time of a run, without waits for a free slot. Default: depends on the interval.',
  ),
  EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT: optionalDuration({ min: '1s' }).describe(
    'How long an activity retries transient errors. At most, and by default, half of `EXPORTD_RUN_TIMEOUT`.',
  ),
  EXPORTD_ACTIVITY_RETRY_INITIAL: duration('1s', { min: '10ms' }).describe(
    'Delay before an activity or a request to S3 is retried. It doubles with each retry.',
  ),
  EXPORTD_ACTIVITY_RETRY_MAX: duration('1m', { min: '10ms' }).describe(
    'Maximum of `EXPORTD_ACTIVITY_RETRY_INITIAL` after it has doubled.',
  ),
  EXPORTD_OPERATOR_FAULT_RETRY_INTERVAL: duration('15s', { min: '10ms', max: '20s' }).describe(
    "How often a worker tries again while runs wait for an operator's fault, such as a refused login.",
  ),
  EXPORTD_HEARTBEAT_TIMEOUT: duration('30s', { min: '500ms' }).describe(
    'An activity without a heartbeat for this long is retried by another worker.',
  ),
  EXPORTD_WORKFLOW_TASK_TIMEOUT: duration('10s', { min: '1s' }).describe(
    'How long a worker may hold a workflow task. Exports stall this long after their worker was killed; a busy worker loses its tasks if it is too short.',
  ),
  EXPORTD_CONTINUE_AS_NEW_COMMANDS: count(50).describe(
    'Schedule and backfill workflows continue as new after this many commands.',
  ),
  EXPORTD_WORKFLOW_BUNDLE: z
    .string()
    .optional()
    .describe(
      'File with the workflows, written by `exportd bundle` of the same version, with which a worker of a clone starts faster.',
    ),
};

/** How a run writes its files. */
export const exports = {
  EXPORTD_EXPORT_SLOTS: machineCount(Math.max(4, Math.floor(cores / 2))).describe(
    'Intervals, or ranges of them, that a worker exports at the same time, and one more for a project that has none. Default: half its cores, at least 4.',
  ),
  EXPORTD_TABLE_READ_TIMEOUT: duration('60s').describe(
    'How long a worker reads a table to describe it or to list its versions. A check may take 55 minutes.',
  ),
  EXPORTD_SLOTS_PER_EXPORT: optionalCount().describe(
    'Maximum slots of one export, to leave room for others. Default: all slots.',
  ),
  EXPORTD_RANGE_ROWS: count(10_000_000).describe(
    'An interval with more rows is split into ranges of this size, which are exported in parallel.',
  ),
  EXPORTD_PARALLEL_RANGES: machineCount(Math.max(2, Math.floor(cores / 2))).describe(
    'A smaller interval is split into up to this many ranges of 250,000 rows or more; `1`: none. Default: half the cores, at least 2.',
  ),
  EXPORTD_RANGES_AT_ONCE: machineCount(Math.max(4, Math.floor(cores / 2))).describe(
    'Ranges of one interval that all workers together export at the same time. Default: half the cores of the process that starts the run, at least 4.',
  ),
  EXPORTD_MAX_REJECTED_ROWS: count(10_000, { min: 0 }).describe(
    'With `on_bad_row: reject`, a run fails when it rejects more rows than this.',
  ),
  EXPORTD_ENCODER_THREADS: machineCount(cores).describe(
    'Threads of a worker that read, encode and compress rows. Default: its cores.',
  ),
  EXPORTD_MEMORY_BUDGET: machineSize(`${Math.max(64, 32 * cores)}MiB`, { min: '1MiB' }).describe(
    'Memory for the rows and encoded bytes of all exports of a worker. Above it, exports are slower. Default: 32 MiB for each core, at least 64 MiB.',
  ),
  EXPORTD_PARTS_PER_EXECUTION: count(1_000).describe(
    'A run continues as new, with a new row in the list of runs, after this many parts.',
  ),
  EXPORTD_S3_PART_SIZE: size('5MiB', { min: '5MiB', max: '5GiB' }).describe(
    'Size of the first part of a multipart upload.',
  ),
  EXPORTD_S3_CA_BUNDLE: caBundle().describe(
    'PEM file with CAs of S3 servers, trusted besides the public ones.',
  ),
  EXPORTD_S3_REQUEST_TIMEOUT: duration('10s', { min: '100ms' }).describe(
    'A request to S3 fails when its connection is silent for this long; one that uploads, after six times as long.',
  ),
  EXPORTD_S3_RETRY_BUDGET: duration('10s').describe(
    'How long a request to S3 is retried. Then the run waits, without a slot, until the bucket responds.',
  ),
  EXPORTD_READER_MEMORY: size('512MiB', { min: '32MiB', max: '16GiB' }).describe(
    'Maximum heap of a process that reads what others own, such as the log of a table or a file that is verified. A worker has at most five, and none for what is short.',
  ),
  EXPORTD_READER_TIMEOUT: duration('30s', { min: '100ms' }).describe(
    'Processor time that such a process may take for an object, or for a part of a file.',
  ),
  EXPORTD_S3_PROBE_AFTER: duration('10s', { min: '10ms' }).describe(
    'A bucket without a response for this long is probed before the next attempt of a run, and between the runs once in `EXPORTD_RECONCILE_INTERVAL`.',
  ),
  EXPORTD_S3_PROBE_TIMEOUT: duration('3s', { min: '10ms' }).describe(
    'How long a probe waits for the response.',
  ),
  EXPORTD_S3_PROBE_INITIAL: duration('1s', { min: '10ms' }).describe(
    'Delay before an unavailable bucket is probed again. It doubles with each probe.',
  ),
  EXPORTD_S3_PROBE_MAX: duration('30s', { min: '10ms' }).describe(
    'Maximum of `EXPORTD_S3_PROBE_INITIAL` after it has doubled.',
  ),
};

/** Removal, comparison and retention after the runs. */
export const maintenance = {
  EXPORTD_MAINTENANCE_INTERVAL: duration('1m', { min: '100ms' }).describe(
    'How often exportd looks for objects to delete and intervals to compare.',
  ),
  EXPORTD_OLD_GENERATION_RETENTION: duration('1h').describe(
    'How long files stay in the bucket after a newer generation replaced them, for readers of older manifests.',
  ),
  EXPORTD_TABLE_FILE_RETENTION: duration('7d').describe(
    'How long files stay in the bucket after a commit took them from their table.',
  ),
  EXPORTD_TABLE_CHECKPOINT_INTERVAL: count(10).describe(
    'After how many commits a table gets a checkpoint, from which readers start.',
  ),
  EXPORTD_ORPHAN_RETENTION: duration('5m').describe(
    'How long uploads and files stay that no manifest references.',
  ),
  EXPORTD_ORPHAN_RETRY_BUDGET: duration('7d').describe(
    'How long a failed deletion is retried, for example in a bucket that no longer exists.',
  ),
};
