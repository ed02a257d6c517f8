import type { Upcasts } from '../domain/event.ts';
import { commandNames } from '../journal/commands.ts';
import { type Connection, type Pool, ReadModelsDiffer } from '../journal/database.ts';
import {
  type AppendFold,
  createJournal,
  type FoldedEvent,
  type Journal,
  type JournalListeners,
  type PendingWrite,
  requireSameReadModels,
} from '../journal/journal.ts';
import { backfillsProjection } from './backfills.ts';
import { batchExportsProjection } from './batch_exports.ts';
import { destinationObjectsProjection } from './destination_objects.ts';
import { intervalsProjection } from './intervals.ts';
import type { Projection } from './projection.ts';
import { createReadModels, readStoredVersions } from './read_models.ts';
import { builderLock, projectionLock } from './rebuild.ts';
import { createRowCache, mergeUpdates, type WantedRows } from './row_cache.ts';
import { sendWrites } from './row_writes.ts';
import { runsProjection } from './runs.ts';
import {
  findStreamState,
  readStreamState,
  stateOf,
  stateWrite,
  streamStatesProjection,
  versionWrite,
} from './stream_states.ts';
import { unsettledRunsProjection } from './unsettled_runs.ts';

/** All read models. A new one is a file and a line here. Each may read those above it. */
export const projections: readonly Projection[] = [
  streamStatesProjection,
  batchExportsProjection,
  runsProjection,
  backfillsProjection,
  destinationObjectsProjection,
  unsettledRunsProjection,
  intervalsProjection,
];

/** All events have their first version so far. */
const upcasts: Upcasts = {};

const readModels = createReadModels(projections, upcasts);

const cachedTables = projections.flatMap(({ cached }) => cached);

/** All rows that folding some events reads. */
function wantedBy(events: readonly FoldedEvent[]): readonly WantedRows[] {
  const wanted: WantedRows[] = [];
  for (const { wants } of projections) for (const event of events) wanted.push(...wants(event));
  return wanted;
}

/**
 * Folds the events of one transaction into all read models: the rows that they need are locked and read, and what has changed is
 * written later, with the states of streams. A row of another read model that a fold only reads is not locked.
 */
function openAppendFold(connection: Connection): AppendFold {
  let pending: PendingWrite[] = [];
  /** Adds a write. A row that was to be updated anyway is updated once. */
  const add = (write: PendingWrite): void => {
    const index = pending.findLastIndex(({ target }) => target === write.target);
    const former = pending[index];
    const merged = former && mergeUpdates(former, write);
    if (merged) pending[index] = merged;
    else pending.push(write);
  };
  const send = async (more: readonly PendingWrite[]): Promise<void> => {
    const writes = [...pending, ...more];
    pending = [];
    await sendWrites(connection, writes);
  };
  return {
    isPending: () => pending.length > 0,
    later: (write) => {
      pending.push(write);
    },
    plan: async (events) => {
      const rows = createRowCache(connection);
      const wanted = wantedBy(events);
      const isStale = ({ table, isNew, isAssigned }: WantedRows): boolean =>
        isNew !== true && isAssigned !== true && pending.some(({ target }) => target === table.name);
      if (pending.length > 0 && wanted.some(isStale)) await send([]);
      const fetch = rows.planFetch(wanted, { locks: true });
      return {
        reads: fetch?.reads ?? null,
        fold: (stored, found) => {
          fetch?.accept(found);
          for (const event of stored) for (const { fold } of projections) fold(rows, event);
          for (const write of rows.takeChanges(cachedTables)) add(write);
        },
      };
    },
    write: (streams) =>
      send(streams.map((stream) => ('state' in stream ? stateWrite(stream) : versionWrite(stream)))),
  };
}

/**
 * Opens the journal of a control database. Its appends fold events into the read models of this folder; the listeners
 * receive them then.
 */
export const openJournal = (pool: Pool, listeners?: JournalListeners): Journal =>
  createJournal(
    pool,
    {
      lock: projectionLock,
      versions: readModels.known,
      upcasts,
      openFold: openAppendFold,
      findState: findStreamState,
      readState: readStreamState,
      stateOf,
    },
    listeners,
  );

/** See `createReadModels`. */
export const {
  ensure: ensureProjections,
  build: buildProjections,
  rebuild,
  switch: switchProjections,
  status: readProjectionsStatus,
} = readModels;

/** The names of the read models that "exportd migrate" would rebuild: of other versions than those of this code, or without an event. */
export const findChangedProjections = (pool: Pool): Promise<readonly string[]> =>
  readModels.findChanged(pool);

/** How a control database fits this version of exportd. */
interface VersionReport {
  /** Why this version must not write to it; null if it may. */
  readonly differs: string | null;
  /** What a newer version has written that this one does not know and leaves to it; null if there is nothing. */
  readonly needs_newer: string | null;
}

/** Compares a control database with this version of exportd. @throws what the database reports */
export async function reportVersions(pool: Pool): Promise<VersionReport> {
  try {
    requireSameReadModels(await readStoredVersions(pool), readModels.known);
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

/** The rows of an export in the read models of a schema: conditions on its id, by table, in the order to delete them. */
const rowsOfExport = (schema: string): Readonly<Record<string, string>> => ({
  destination_objects: 'batch_export_id = $1',
  location_failures: 'batch_export_id = $1',
  unsettled_runs: 'batch_export_id = $1',
  intervals: 'batch_export_id = $1',
  covered_ranges: 'batch_export_id = $1',
  batch_exports: 'id = $1',
  // Of the live ones its digests have left no more than that.
  stream_states:
    schema === 'exportd'
      ? `stream_type = 'batch_export' and stream_id = $1`
      : `stream_id = $1 or state -> 'spec' ->> 'batch_export_id' = $1::text`,
  ...(schema !== 'exportd' && {
    batch_export_runs: 'batch_export_id = $1',
    backfill_runs: `backfill_id in (select id from ${schema}.backfills where batch_export_id = $1)`,
    backfills: 'batch_export_id = $1',
  }),
});

/**
 * Deletes a purged export from all read models, also from those beside the live ones, which its digests have not reached yet.
 * Its stream is collapsed, so that no rebuild finds it again.
 * @returns false, without any change, while a process builds read models: it may have read the stream already
 */
export async function forgetExport(connection: Connection, id: string): Promise<boolean> {
  const { rows } = await connection.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock_shared($1) as locked',
    [builderLock],
  );
  if (rows[0]?.locked !== true) return false;
  for (const schema of ['exportd', 'exportd_next', 'exportd_previous']) {
    const conditions = rowsOfExport(schema);
    const { rows: tables } = await connection.query<{ name: string }>(
      `select name from unnest($1::text[]) with ordinality as wanted (name, place)
       where to_regclass($2 || '.' || name) is not null order by place`,
      [Object.keys(conditions), schema],
    );
    for (const { name } of tables)
      await connection.query(`delete from ${schema}.${name} where ${conditions[name] ?? 'false'}`, [id]);
  }
  return true;
}
