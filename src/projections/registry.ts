import pg from 'pg';
import { commandNames } from '../journal/commands.ts';
import { type Connection, inTransaction, type Pool, ReadModelsDiffer } from '../journal/database.ts';
import {
  type CommitObserver,
  createJournal,
  type FoldedState,
  type Journal,
  readAllEvents,
  type ReadModelVersions,
  requireSameReadModels,
  type StoredEvent,
} from '../journal/journal.ts';
import { backfillsProjection } from './backfills.ts';
import { batchExportsProjection } from './batch_exports.ts';
import { destinationObjectsProjection } from './destination_objects.ts';
import { intervalsProjection } from './intervals.ts';
import type { Projection } from './projection.ts';
import { runsProjection, unsettledRunsProjection } from './runs.ts';
import {
  findStreamState,
  readStreamState,
  streamStatesProjection,
  writeStreamState,
  writeStreamVersion,
} from './stream_states.ts';

/** All read models. A new one is a folder and a line here. Each may read those above it. */
export const projections: readonly Projection[] = [
  streamStatesProjection,
  batchExportsProjection,
  runsProjection,
  backfillsProjection,
  destinationObjectsProjection,
  unsettledRunsProjection,
  intervalsProjection,
];

const knownVersions: ReadModelVersions = Object.fromEntries(
  projections.map(({ name, version }) => [name, version]),
);

/** Advisory lock: appends acquire it shared, a rebuild of the projections exclusively. */
const projectionLock = 7_116_201;

/** Folds a stored event into all read models, in the transaction of the append. See `Projection.apply`. */
async function applyToProjections(
  connection: Connection,
  event: StoredEvent,
  folded?: FoldedState,
): Promise<void> {
  for (const projection of projections) await projection.apply(connection, event, folded);
}

/**
 * Opens the journal of a control database. Its appends fold events into the read models of this folder; `onCommitted`
 * receives them after the commit.
 */
export const openJournal = (pool: Pool, onCommitted?: CommitObserver): Journal =>
  createJournal(
    pool,
    {
      lock: projectionLock,
      versions: knownVersions,
      apply: applyToProjections,
      findState: findStreamState,
      readState: readStreamState,
      writeState: writeStreamState,
      writeVersion: writeStreamVersion,
    },
    onCommitted,
  );

const versions = 'exportd.projection_versions';

/**
 * Drops all read models and folds the whole journal again, in one transaction that excludes appends.
 * @returns the number of events folded.
 * @throws ReadModelsDiffer when they are those of a newer version
 */
export async function rebuild(pool: Pool): Promise<number> {
  return withExclusiveLock(pool, async (connection) => {
    await requireNoNewer(connection);
    return refold(connection);
  });
}

/**
 * Creates missing read models, and rebuilds all of them if a version has changed, or if an older version has folded an event
 * that it did not know.
 * @throws ReadModelsDiffer when they are those of a newer version
 */
export async function ensureProjections(pool: Pool): Promise<void> {
  await withExclusiveLock(pool, async (connection) => {
    await requireNoNewer(connection);
    if (!(await areProjectionsUpToDate(connection))) await refold(connection);
  });
}

/** An older version never rebuilds: it would drop what it does not know. @throws ReadModelsDiffer */
async function requireNoNewer(connection: Connection): Promise<void> {
  const stored = await readStoredVersions(connection);
  const newer = Object.entries(stored).filter(([name, version]) => version > (knownVersions[name] ?? 0));
  if (newer.length > 0) requireSameReadModels(stored, knownVersions);
}

async function readStoredVersions(connection: Pool | Connection): Promise<ReadModelVersions> {
  const { rows } = await connection.query<{ present: boolean }>(
    'select to_regclass($1) is not null as present',
    [versions],
  );
  if (!rows[0]?.present) return {};
  const stored = await connection.query<{ name: string; version: number }>(
    `select name, version from ${versions}`,
  );
  return Object.fromEntries(stored.rows.map(({ name, version }) => [name, version]));
}

/** How a control database fits this version of exportd. */
export interface VersionReport {
  /** Why this version must not write to it; null if it may. */
  readonly differs: string | null;
  /** What a newer version has written that this one does not know and leaves to it; null if there is nothing. */
  readonly needs_newer: string | null;
}

/** Compares a control database with this version of exportd. @throws what the database reports */
export async function reportVersions(pool: Pool): Promise<VersionReport> {
  try {
    requireSameReadModels(await readStoredVersions(pool), knownVersions);
  } catch (error) {
    if (error instanceof ReadModelsDiffer) return { differs: error.message, needs_newer: null };
    throw error;
  }
  const { rows } = await pool.query<{ commands: number; streams: number }>(
    `select (select count(*) from exportd.commands where status = 'pending' and name <> all($1)) as commands,
       (select count(*) from exportd.stream_states where unknown_event is not null) as streams`,
    [commandNames],
  );
  const { commands = 0, streams = 0 } = rows[0] ?? {};
  if (commands === 0 && streams === 0) return { differs: null, needs_newer: null };
  const unknown = [
    ...(commands > 0 ? [`${commands} pending command${commands === 1 ? '' : 's'}`] : []),
    ...(streams > 0
      ? [`events of ${streams} stream${streams === 1 ? '' : 's'}, whose states lack them`]
      : []),
  ];
  const needs_newer = `A newer version of exportd has stored what this one does not know: ${unknown.join(', and ')}. Processes of the newer version know it${streams > 0 ? ' once "exportd migrate" of that version has run' : ''}.`;
  return { differs: null, needs_newer };
}

/** Deletes a purged export from all read models. Its stream is collapsed, so that no rebuild finds it again. */
export async function forgetExport(connection: Connection, id: string): Promise<void> {
  for (const table of ['destination_objects', 'location_failures', 'unsettled_runs', 'intervals'])
    await connection.query(`delete from exportd.${table} where batch_export_id = $1`, [id]);
  await connection.query('delete from exportd.batch_exports where id = $1', [id]);
  await connection.query(
    `delete from exportd.stream_states where stream_type = 'batch_export' and stream_id = $1`,
    [id],
  );
}

const deadlockDetected = '40P01';
const maxAttempts = 10;

/**
 * Runs `work` while no append runs. Readers lock tables in a different order, so dropping tables can deadlock with them;
 * then the transaction is retried.
 */
async function withExclusiveLock<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
  attempt = 1,
): Promise<Result> {
  try {
    return await inTransaction(pool, async (connection) => {
      await connection.query('set local statement_timeout = 0');
      await connection.query('select pg_advisory_xact_lock($1)', [projectionLock]);
      return work(connection);
    });
  } catch (error) {
    const isDeadlock = error instanceof pg.DatabaseError && error.code === deadlockDetected;
    if (!isDeadlock || attempt >= maxAttempts) throw error;
    return withExclusiveLock(pool, work, attempt + 1);
  }
}

async function refold(connection: Connection): Promise<number> {
  for (const { owns, tables } of projections) {
    for (const table of owns) await connection.query(`drop table if exists ${table} cascade`);
    await connection.query(tables);
  }
  let events = 0;
  for await (const batch of readAllEvents(connection)) {
    for (const event of batch) await applyToProjections(connection, event);
    events += batch.length;
  }
  await connection.query(`drop table if exists ${versions}`);
  await connection.query(`create table ${versions} (name text primary key, version integer not null)`);
  for (const { name, version } of projections)
    await connection.query(`insert into ${versions} values ($1, $2)`, [name, version]);
  return events;
}

/** Whether the read models exist in the versions of this code. */
export async function areProjectionsUpToDate(connection: Pool | Connection): Promise<boolean> {
  const tables = [versions, ...projections.flatMap(({ owns }) => owns)];
  const { rows } = await connection.query<{ present: boolean }>(
    'select bool_and(to_regclass(name) is not null) as present from unnest($1::text[]) as name',
    [tables],
  );
  if (!rows[0]?.present) return false;
  const stored = await readStoredVersions(connection);
  if (projections.some(({ name, version }) => stored[name] !== version)) return false;
  const unknown = await connection.query(
    'select from exportd.stream_states where unknown_event is not null limit 1',
  );
  return unknown.rows.length === 0;
}
