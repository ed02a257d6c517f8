import { randomUUID } from 'node:crypto';
import type { KeyRing } from '../config/key_ring.ts';
import { hashErasedId, storeErasedIds } from '../destination/erased_ids.ts';
import { batchExportDecider, type Model } from '../domain/batch_export.ts';
import { erasureDecider, type ErasureEvent, type HeldObject } from '../domain/erasure.ts';
import type { AdoptedManifest } from '../domain/exported_files.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import { rowsOfFingerprint, subtractFingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { requireActive, runDecider } from '../domain/run.ts';
import {
  activeRunStatuses,
  exportedFingerprint,
  isActiveStatus,
  type RunStatus,
} from '../domain/run_state.ts';
import { inTransaction, type Pool } from '../journal/database.ts';
import { deterministicId, type Journal } from '../journal/journal.ts';
import { findActiveRun } from './create_run.ts';
import { nextGeneration } from './record_files.ts';

/** A request to erase persons from what a project has exported. */
interface ErasureRequest {
  readonly team_id: number;
  readonly user_id: number;
  readonly distinct_ids: readonly string[];
}

/**
 * Records an erasure. From its commit on, no step of an export of the project selects rows of the ids.
 * @returns its id, whose workflow is to be started
 */
export async function requestErasure(
  journal: Journal,
  keyRing: KeyRing,
  { team_id, user_id, distinct_ids }: ErasureRequest,
): Promise<string> {
  const id = randomUUID();
  const ids = [...new Set(distinct_ids)];
  await journal.transaction(async (transaction) => {
    await storeErasedIds(transaction.connection, keyRing, { id, team_id, distinct_ids: ids });
    const stream = await transaction.lock(erasureDecider, id);
    const id_hashes = ids.map((distinctId) => hashErasedId(id, distinctId));
    await stream.append('requested', [{ type: 'ErasureRequested', data: { team_id, user_id, id_hashes } }]);
  });
  return id;
}

/** An interval of an export. */
export interface ErasedInterval extends DataInterval {
  readonly batch_export_id: string;
}

/** What a search of the manifest of an interval has found. */
interface FoundRows {
  readonly replaced: ReplacedRun;
  readonly erased_rows: number;
  /** All rows of erased persons, also rejected ones. */
  readonly erased: Fingerprint;
  /** The partitions of events that its files are in; null if these are not partitioned by event. */
  readonly events: readonly string[] | null;
  /** The manifest as it was found in the bucket, where the journal no longer knows it; else null. */
  readonly collapsed: Omit<AdoptedManifest, 'raised_to'> | null;
}

/**
 * Creates the run that publishes an interval without the rows that were found. It has the model and config of the manifest that
 * it replaces, and is counted: its rows are those of the manifest without the erased ones.
 * @returns its id; null if the interval has an active run, or has another manifest by now
 */
export const startRewriting = (
  journal: Journal,
  erasureId: string,
  { batch_export_id, start, end }: ErasedInterval,
  { replaced, erased_rows, erased, events, collapsed }: FoundRows,
): Promise<string | null> =>
  journal.transaction(async (transaction) => {
    const { connection } = transaction;
    await transaction.lock(batchExportDecider, batch_export_id);
    const interval = { start, end };
    const { rows } = await connection.query<{ id: string; attempts: number }>(
      `select id, (select count(*)::int from exportd.batch_export_runs where backfill_id = $4) as attempts
       from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
       and data_interval_end = $3 and (status = 'Completed' or adopted_generation is not null)
       order by position desc limit 1`,
      [batch_export_id, start, end, erasureId],
    );
    const [newest] = rows;
    if (newest?.id !== (collapsed ? undefined : (replaced.adopted_by ?? replaced.run_id))) return null;
    if ((await findActiveRun(connection, batch_export_id, interval)) !== null) return null;
    const erasure = await transaction.lock(erasureDecider, erasureId);
    const attempt = newest?.attempts ?? 0;
    const runId = deterministicId('erasure', erasureId, batch_export_id, start, attempt);
    const run = await transaction.lock(runDecider, runId);
    const { spec, generation, settled } = replaced.run;
    const before = exportedFingerprint(replaced.run);
    const fingerprint = subtractFingerprint(before, erased);
    const [bucket_rows, source_rows] = [rowsOfFingerprint(before), rowsOfFingerprint(fingerprint)];
    await run.append('created', [
      {
        type: 'RunCreated',
        data: {
          ...{
            batch_export_id,
            team_id: spec.team_id,
            model: spec.model,
            config_version: spec.config_version,
          },
          ...{
            data_interval_start: start,
            data_interval_end: end,
            backfill_id: erasureId,
            erasure_id: erasureId,
          },
          ...{ retry_number: 0, allow_shrink: true, continues_run_id: null, keeps_definition: true },
        },
      },
    ]);
    if (collapsed) {
      const raised_to = await nextGeneration(transaction, requireActive(run.state()));
      await run.append('adopted', [
        {
          type: 'RunManifestAdopted',
          data: { ...collapsed, raised_to: Math.max(raised_to, collapsed.generation + 1) },
        },
      ]);
    }
    await run.append('found', [
      {
        type: 'RunCounted',
        data: {
          records_total_count: source_rows,
          fingerprint,
          settled,
          split_keys: [],
          ...(events && { events }),
        },
      },
      {
        type: 'RunReplacementChecked',
        data: {
          ...{ replaced: { run_id: replaced.run_id, generation }, outcome: 'shrink_allowed', source: null },
          ...{ missing_rows: erased_rows, bucket_rows, source_rows, generation: null },
        },
      },
    ]);
    await erasure.append(`found:${runId}`, [
      {
        type: 'ErasureIntervalFound',
        data: { batch_export_id, start, end, run_id: runId, generation, rows: erased_rows },
      },
    ]);
    return runId;
  });

/** Appends an event of a running erasure once. */
export const recordErasure = (
  journal: Journal,
  erasureId: string,
  cause: string,
  event: ErasureEvent,
): Promise<void> =>
  journal.transaction(async (transaction) => {
    const erasure = await transaction.lock(erasureDecider, erasureId);
    if (erasure.state().status === 'Running') await erasure.append(cause, [event]);
  });

/** A run of an erasure that has ended, or is still active. */
interface RewritingRun {
  readonly run_id: string;
  readonly status: RunStatus;
  readonly latest_error: string | null;
}

/** Reads what became of a run, and of those that continue it. */
export async function readRewritingRun(pool: Pool, runId: string): Promise<RewritingRun | undefined> {
  const { rows } = await pool.query<RewritingRun>(
    'select id as run_id, status, latest_error from exportd.batch_export_runs where id = $1',
    [runId],
  );
  return rows[0]?.status === 'ContinuedAsNew'
    ? readRewritingRun(pool, deterministicId('continue', runId))
    : rows[0];
}

/** Whether a run of an erasure has ended. */
export const hasEnded = ({ status }: Pick<RewritingRun, 'status'>): boolean => !isActiveStatus(status);

/** A published interval of an export. */
export interface PublishedInterval extends DataInterval {
  /** The run and the config of its manifest, if its history was collapsed: only the bucket says then what is published. */
  readonly collapsed: CollapsedRun | null;
}

/** The run of a manifest that the journal no longer knows. */
export interface CollapsedRun {
  readonly run_id: string;
  readonly team_id: number;
  readonly model: Model;
  readonly config_version: number;
}

/** SQL: the manifest of a row `interval` as `CollapsedRun`. */
const collapsedRun = `case when interval.collapsed_generation is not null then jsonb_build_object(
  'run_id', interval.manifest_run_id, 'team_id', export.team_id, 'model', export.model,
  'config_version', interval.collapsed_config_version) end`;

/** How far an erasure has searched an export. */
export interface ErasureSearch {
  readonly searched_until: string | null;
  readonly searched_at: string;
  readonly intervals: number;
  readonly files: number;
  readonly rows: number;
  readonly bytes: number;
}

/** Reads the exports of a project with manifests, and how far an erasure has searched them. */
export async function readSearches(
  pool: Pool,
  erasureId: string,
  teamId: number,
): Promise<readonly (ErasureSearch & { readonly batch_export_id: string })[]> {
  await pool.query(
    `insert into exportd.erasure_searches (erasure_id, batch_export_id)
     select $1, id from exportd.batch_exports where team_id = $2 on conflict do nothing`,
    [erasureId, teamId],
  );
  const { rows } = await pool.query<ErasureSearch & { batch_export_id: string }>(
    `select batch_export_id, searched_until::text, searched_at::text, intervals, files, rows, bytes
     from exportd.erasure_searches where erasure_id = $1 order by batch_export_id`,
    [erasureId],
  );
  return rows;
}

/** Intervals of one read. */
const pageSize = 200;

/** Reads the next published intervals of an export, in order: those that start after `searchedUntil`. */
export async function readPublishedIntervals(
  pool: Pool,
  batchExportId: string,
  searchedUntil: string | null,
): Promise<readonly PublishedInterval[]> {
  const { rows } = await pool.query<PublishedInterval>(
    `select data_interval_start as start, data_interval_end as end, ${collapsedRun} as collapsed
     from exportd.intervals interval join exportd.batch_exports export on export.id = interval.batch_export_id
     where batch_export_id = $1 and manifest_run_id is not null
       and data_interval_start > coalesce($2::timestamptz, '-infinity')
     order by data_interval_start fetch first ${pageSize} rows with ties`,
    [batchExportId, searchedUntil],
  );
  return rows;
}

/**
 * Reads the intervals of an export whose manifest was published since a time by a run of something else than the erasure: a run
 * that had read its rows before the erasure was requested may have ended after its search.
 */
export async function readIntervalsSince(
  pool: Pool,
  erasureId: string,
  batchExportId: string,
  since: string,
): Promise<readonly PublishedInterval[]> {
  const { rows } = await pool.query<PublishedInterval>(
    `select interval.data_interval_start as start, interval.data_interval_end as end, null as collapsed
     from exportd.intervals interval join exportd.batch_export_runs run on run.id = interval.manifest_run_id
     where interval.batch_export_id = $1 and interval.completed_at >= $2::timestamptz
       and run.backfill_id is distinct from $3
     order by interval.data_interval_start`,
    [batchExportId, since, erasureId],
  );
  return rows;
}

/** Stores that an erasure has searched an interval. `until`: all intervals up to it are. */
export async function recordSearch(
  pool: Pool,
  erasureId: string,
  batchExportId: string,
  searched: {
    readonly until?: string;
    readonly at?: string;
    readonly intervals: number;
    readonly files: number;
    readonly rows: number;
    readonly bytes: number;
  },
): Promise<void> {
  const { until = null, at = null, intervals, files, rows, bytes } = searched;
  await pool.query(
    `update exportd.erasure_searches set searched_until = coalesce($3, searched_until),
       searched_at = coalesce($4, searched_at), intervals = intervals + $5, files = files + $6, rows = rows + $7,
       bytes = bytes + $8
     where erasure_id = $1 and batch_export_id = $2`,
    [erasureId, batchExportId, until, at, intervals, files, rows, bytes],
  );
}

/**
 * Reads an active run of a project that may have read rows before an erasure was requested; undefined without one. A run that
 * continues another one has rows of that one.
 */
export async function findOlderRun(
  pool: Pool,
  erasureId: string,
  teamId: number,
  requestedAt: string,
): Promise<{ readonly id: string } | undefined> {
  const { rows } = await pool.query<{ id: string }>(
    `select run.id from exportd.batch_export_runs run join exportd.stream_states folded
       on folded.stream_type = 'run' and folded.stream_id = run.id
     where run.team_id = $1 and run.status = any($2)
       and (run.created_at < $3 or folded.state -> 'spec' ? 'continues_run_id')
       and run.backfill_id is distinct from $4 limit 1`,
    [teamId, activeRunStatuses, requestedAt, erasureId],
  );
  return rows[0];
}

/**
 * Reads what an erasure has removed of an export, and what is still there: objects under an object lock, those that could not be
 * deleted meanwhile, and how many others nothing needs.
 */
export async function readRemovedObjects(
  pool: Pool,
  erasureId: string,
  batchExportId: string,
): Promise<{ readonly held: readonly HeldObject[]; readonly removed: number; readonly left: number }> {
  const { rows: deletions } = await pool.query<{ object: string; reason: string | null; deleted: boolean }>(
    `select event.data ->> 'key' as object, event.data ->> 'reason' as reason,
       (event.data ->> 'deleted')::boolean as deleted
     from exportd.journal_events event join exportd.batch_export_runs run on run.id = event.stream_id
     where event.global_position > (select position from exportd.erasures where id = $1)
       and event.stream_type = 'run' and event.event_type = 'RunObjectDeleted' and not event.data ? 'held'
       and run.batch_export_id = $2`,
    [erasureId, batchExportId],
  );
  const { rows: locked } = await pool.query<{ object: string; until: string }>(
    `select key as object, held_until as until from exportd.destination_objects
     where batch_export_id = $1 and held_until is not null order by position, ordinal`,
    [batchExportId],
  );
  const left = await pool.query<{ left: number }>(
    `select count(*)::int as left from exportd.destination_objects
     where batch_export_id = $1 and obsolete_at is not null and held_until is null`,
    [batchExportId],
  );
  return {
    held: [
      ...deletions.flatMap(({ object, reason, deleted }) =>
        deleted ? [] : [{ object, reason: reason ?? '' }],
      ),
      ...locked.map(({ object, until }) => ({
        ...{ object, until },
        reason: `Object lock keeps its version with all its rows. exportd deletes it after ${until}.`,
      })),
    ],
    removed: deletions.filter(({ deleted }) => deleted).length,
    left: left.rows[0]?.left ?? 0,
  };
}

/**
 * Reads the configs of an export, the newest first, if one of its manifests may ever have named persons by the keys of files: it
 * exports persons, or has done so. The history of the runs may be collapsed.
 */
export async function readManifestConfigs(pool: Pool, batchExportId: string): Promise<readonly number[]> {
  const { rows } = await pool.query<{ version: number }>(
    `select version from exportd.destination_configs where batch_export_id = $1 and (
       exists (select from exportd.batch_exports where id = $1 and model = 'persons')
       or exists (select from exportd.batch_export_runs where batch_export_id = $1 and model = 'persons')
       or exists (select from exportd.journal_events where stream_type = 'batch_export' and stream_id = $1
         and data -> 'definition' ->> 'model' = 'persons'))
     order by version desc`,
    [batchExportId],
  );
  return rows.map(({ version }) => version);
}

/** Reads the configs and models of files that no manifest of an export needs: a table of them may still have versions with these. */
export async function readObsoleteTables(
  pool: Pool,
  batchExportId: string,
): Promise<readonly { readonly config_version: number; readonly model: Model }[]> {
  const { rows } = await pool.query<{ config_version: number; model: Model }>(
    `select distinct object.config_version, run.model from exportd.destination_objects object
     join exportd.batch_export_runs run on run.id = object.run_id
     join exportd.destination_configs config on config.batch_export_id = object.batch_export_id
       and config.version = object.config_version and config.config ->> 'table_format' is not null
     where object.batch_export_id = $1 and object.object_type = 'file' and object.obsolete_at is not null
     order by object.config_version desc`,
    [batchExportId],
  );
  return rows;
}

/** How many runs an erasure has had for an interval. */
export async function countAttempts(
  pool: Pool,
  erasureId: string,
  { batch_export_id, start, end }: ErasedInterval,
): Promise<number> {
  const { rows } = await pool.query<{ attempts: number }>(
    `select count(*)::int as attempts from exportd.batch_export_runs where backfill_id = $1 and batch_export_id = $2
       and data_interval_start = $3 and data_interval_end = $4`,
    [erasureId, batch_export_id, start, end],
  );
  return rows[0]?.attempts ?? 0;
}

/** Reads the intervals that an erasure has rewritten, in order. */
export async function readTouchedIntervals(
  pool: Pool,
  erasureId: string,
): Promise<readonly ErasedInterval[]> {
  const { rows } = await pool.query<ErasedInterval>(
    `select batch_export_id, data_interval_start as start, data_interval_end as end from exportd.erasure_intervals
     where erasure_id = $1 and status = 'Completed' order by batch_export_id, data_interval_start`,
    [erasureId],
  );
  return rows;
}

/** What `verify` found in a range of an export. */
export interface VerifiedInterval extends ErasedInterval {
  readonly manifests: number;
  readonly files: number;
  readonly rows: number;
  readonly findings: number;
}

/** Rows of the control database that had something of the persons. */
type ForgottenRows = Readonly<Record<string, number>>;

/**
 * Deletes what the control database may have of the rows of a project: results and texts of queries, and reports of verifications,
 * which name rows by their ids.
 */
export async function purgeErasedIds(pool: Pool, teamId: number): Promise<ForgottenRows> {
  const statements: Readonly<Record<string, string>> = {
    query_results: 'delete from exportd.query_results where team_id = $1',
    queries: 'delete from exportd.queries where team_id = $1 and end_time is not null',
    verifications: 'delete from exportd.verifications where team_id = $1 and finished_at is not null',
  };
  const forgotten: Record<string, number> = {};
  for (const [name, statement] of Object.entries(statements)) {
    const { rowCount } = await pool.query(statement, [teamId]);
    forgotten[name] = rowCount ?? 0;
  }
  return forgotten;
}

/** Runs whose keys are replaced in one transaction. */
const runsAtOnce = 100;

/**
 * Replaces the ids in the keys of rows that runs of persons have recorded: of the first and the last row of files and parts. The
 * files that had them are gone. Runs that are active now started after the request, and have none.
 * @param replacements the ids, and what names them instead
 * @returns how many rows of the control database were changed
 */
export async function forgetKeys(
  pool: Pool,
  teamId: number,
  replacements: ReadonlyMap<string, string>,
): Promise<number> {
  const keyOf = (text: string): string => `'"id": ' || to_jsonb(${text}::text)::text`;
  const changed = (column: string): string =>
    `replace(${column}::text, ${keyOf('$2')}, ${keyOf('$3')})::jsonb`;
  const has = (column: string): string => `strpos(${column}::text, ${keyOf('$2')}) > 0`;
  const statements = [
    ['journal_events', 'data', 'stream_id'],
    ['stream_states', 'state', `stream_type = 'run' and stream_id`],
    ['destination_objects', 'file', 'run_id'],
    ['batch_export_runs', 'open_parts', 'id'],
  ].map(
    ([table, column = '', id]) =>
      `update exportd.${table} set ${column} = ${changed(column)} where ${id} = any($1) and ${has(column)}`,
  );
  let rows = 0;
  for (let after: number | undefined = 0; after !== undefined;) {
    const found: { rows: { id: string; position: number }[] } = await pool.query(
      `select id, position from exportd.batch_export_runs where team_id = $1 and model = 'persons' and position > $2
         and not status = any($3) order by position limit ${runsAtOnce}`,
      [teamId, after, activeRunStatuses],
    );
    const ids = found.rows.map(({ id }) => id);
    if (ids.length > 0)
      rows += await inTransaction(pool, async (connection) => {
        await connection.query(`select set_config('exportd.erasing', 'on', true)`);
        let updated = 0;
        for (const [id, replacement] of replacements)
          for (const statement of statements)
            updated += (await connection.query(statement, [ids, id, replacement])).rowCount ?? 0;
        return updated;
      });
    after = found.rows.at(-1)?.position;
  }
  return rows;
}

/** Where the ids may be that an erasure reads nothing of, as its certificate says. */
const notSearched = [
  'values other than distinct_id, such as properties',
  'what other writers have added to tables: files, such as those of OPTIMIZE, and statistics. exportd writes those of _inserted_at alone',
  'backups, copies of files, and the source',
];

/** What an erasure has searched, found, rewritten and removed. It names persons by the hashes of their ids. */
export async function readCertificate(
  pool: Pool,
  erasureId: string,
  ending: {
    readonly status: 'Completed' | 'Incomplete';
    readonly verified: readonly VerifiedInterval[];
    readonly forgotten: ForgottenRows;
  },
): Promise<object> {
  const { rows } = await pool.query<{ certificate: object }>(
    `select jsonb_build_object('version', 1, 'erasure_id', id, 'project_id', team_id, 'id_hashes', id_hashes,
       'id_hash', 'SHA-256 of the id of the erasure, a slash and the distinct id',
       'requested_at', to_char(created_at at time zone 'UTC', $2),
       'ended_at', to_char(clock_timestamp() at time zone 'UTC', $2),
       'searched', coalesce((
         select jsonb_agg(jsonb_build_object('batch_export_id', batch_export_id, 'intervals', intervals, 'files', files,
           'rows', rows, 'bytes', bytes) order by batch_export_id)
         from exportd.erasure_searches where erasure_id = $1), '[]'),
       'rewritten', coalesce((
         select jsonb_agg(jsonb_build_object('batch_export_id', batch_export_id,
           'start', to_char(data_interval_start at time zone 'UTC', $2),
           'end', to_char(data_interval_end at time zone 'UTC', $2), 'rows_erased', rows, 'run_id', run_id)
           order by batch_export_id, data_interval_start)
         from exportd.erasure_intervals where erasure_id = $1 and status = 'Completed' and rows > 0), '[]'),
       'failed', coalesce((
         select jsonb_agg(jsonb_build_object('batch_export_id', batch_export_id,
           'start', to_char(data_interval_start at time zone 'UTC', $2),
           'end', to_char(data_interval_end at time zone 'UTC', $2), 'error', error)
           order by batch_export_id, data_interval_start)
         from exportd.erasure_intervals where erasure_id = $1 and status = 'Failed'), '[]'),
       'rows_erased', rows_erased, 'objects_removed', objects_removed, 'held', held,
       'not_searched', $3::jsonb) as certificate
     from exportd.erasures where id = $1`,
    [erasureId, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"', JSON.stringify(notSearched)],
  );
  return { ...rows[0]?.certificate, ...ending };
}
