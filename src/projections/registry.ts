import pg from 'pg';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import {
  type CommitObserver,
  createJournal,
  type FoldedState,
  type Journal,
  readAllEvents,
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
 */
export async function rebuild(pool: Pool): Promise<number> {
  return withExclusiveLock(pool, refold);
}

/** Creates missing read models, and rebuilds all of them if a version has changed. */
export async function ensureProjections(pool: Pool): Promise<void> {
  await withExclusiveLock(pool, async (connection) => {
    if (!(await areProjectionsUpToDate(connection))) await refold(connection);
  });
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
  const stored = await connection.query<{ name: string; version: number }>(
    `select name, version from ${versions}`,
  );
  return projections.every(({ name, version }) =>
    stored.rows.some((row) => row.name === name && row.version === version),
  );
}
