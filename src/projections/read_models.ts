import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Upcasts } from '../domain/event.ts';
import { type Connection, inTransaction, type Pool } from '../journal/database.ts';
import { type ReadModelVersions, requireSameReadModels } from '../journal/journal.ts';
import type { Projection } from './projection.ts';
import {
  asBuilder,
  builderLock,
  createBuildTable,
  createSideModels,
  isBuilding,
  isIntact,
  onConnection,
  openSideFold,
  type ProgressListener,
  projectionLock,
  readSideModels,
  type SideModels,
  type SideSchema,
} from './rebuild.ts';
import { dayMs } from '../domain/intervals.ts';

/** How read models are built and switched. */
export interface RebuildOptions {
  readonly onProgress?: ProgressListener | undefined;
  /** Milliseconds for which the former version is kept; by default a day. */
  readonly keepPreviousMs?: number;
  /** Whether to drop what an earlier process has built, and start at the first event. */
  readonly restarts?: boolean;
  /** How many events one transaction folds; by default 20,000. */
  readonly eventsPerBatch?: number | undefined;
}

/** A switch as it happened. */
export interface Switch {
  /** The read models that are live from here on, by name. */
  readonly versions: ReadModelVersions;
  /** Milliseconds for which appends waited. */
  readonly locked_ms: number;
  /** The journal position that both versions have. */
  readonly position: number;
}

/** The read models of a control database, as this version of exportd sees them. */
export interface ReadModelsStatus {
  readonly models: readonly {
    readonly name: string;
    /** The version of this exportd. */
    readonly known: number;
    /** Null if it is missing. */
    readonly live: number | null;
    readonly next: number | null;
    readonly previous: number | null;
  }[];
  readonly journal_position: number;
  readonly next:
    | (Pick<SideModels, 'position' | 'events' | 'events_per_second' | 'started_at' | 'updated_at'> & {
        /** Whether a process works on it. */
        readonly is_running: boolean;
        /** Null before the first batch. */
        readonly remaining_seconds: number | null;
      })
    | null;
  readonly previous: Pick<SideModels, 'position' | 'drop_after'> | null;
}

/** No switch to another version is possible. */
class CannotSwitch extends Error {
  override readonly name = 'CannotSwitch';
}

const versionsTable = 'exportd.projection_versions';

/** Reads the versions of the live read models, by name. */
export async function readStoredVersions(connection: Pool | Connection): Promise<ReadModelVersions> {
  const { rows } = await connection.query<{ present: boolean }>(
    'select to_regclass($1) is not null as present',
    [versionsTable],
  );
  if (!rows[0]?.present) return {};
  const stored = await connection.query<{ name: string; version: number }>(
    `select name, version from ${versionsTable}`,
  );
  return Object.fromEntries(stored.rows.map(({ name, version }) => [name, version]));
}

/** Drops the former version once its time is over, unless a process works on read models. */
export const dropExpiredReadModels = (pool: Pool): Promise<void> =>
  inTransaction(pool, async (connection) => {
    const previous = await readSideModels(connection, 'exportd_previous');
    if (!previous?.drop_after || Date.parse(previous.drop_after) > Date.now()) return;
    const { rows } = await connection.query<{ locked: boolean }>(
      'select pg_try_advisory_xact_lock($1) as locked',
      [builderLock],
    );
    if (rows[0]?.locked) await connection.query('drop schema exportd_previous cascade');
  });

/** Manages read models by these projections. Each of them may read those above it. */
export function createReadModels(projections: readonly Projection[], upcasts: Upcasts = {}) {
  const known: ReadModelVersions = Object.fromEntries(
    projections.map(({ name, version }) => [name, version]),
  );
  const all = projections.map(({ name }) => name);

  /** These projections with those that they read, whose tables must be as of the same event. */
  function withRead(names: readonly string[]): readonly Projection[] {
    const wanted = new Set(names);
    for (const { name, reads } of projections.toReversed())
      if (wanted.has(name)) for (const read of reads) wanted.add(read);
    return projections.filter(({ name }) => wanted.has(name));
  }

  /** An older version never rebuilds: it would drop what it does not know. @throws ReadModelsDiffer */
  function requireNoNewer(versions: ReadModelVersions): void {
    const newer = Object.entries(versions).filter(([name, version]) => version > (known[name] ?? 0));
    if (newer.length > 0) requireSameReadModels(versions, known);
  }

  /** The names of the read models that are missing or of another version; all of them if an older one left events out. */
  async function findChanged(connection: Pool | Connection): Promise<readonly string[]> {
    const stored = await readStoredVersions(connection);
    const { rows } = await connection.query<{ table: string }>(
      'select name as table from unnest($1::text[]) as name where to_regclass(name) is null',
      [projections.flatMap(({ owns }) => owns)],
    );
    const missing = new Set(rows.map(({ table }) => table));
    const changed = projections.filter(
      ({ name, version, owns }) => stored[name] !== version || owns.some((table) => missing.has(table)),
    );
    if (changed.length > 0) return changed.map(({ name }) => name);
    const unknown = await connection.query(
      'select from exportd.stream_states where unknown_event is not null limit 1',
    );
    return unknown.rows.length > 0 ? all : [];
  }

  /** Creates the tables of an empty journal, which need no schema of their own; false if it has events. */
  const createEmpty = (connection: Connection): Promise<boolean> =>
    onConnection(connection, async () => {
      await connection.query('select pg_advisory_xact_lock($1)', [projectionLock]);
      const { rows } = await connection.query('select from exportd.journal_events limit 1');
      if (rows.length > 0) return false;
      for (const { owns, tables } of projections) {
        for (const table of owns) await connection.query(`drop table if exists ${table} cascade`);
        await connection.query(tables);
      }
      await recordVersions(connection, projections);
      return true;
    });

  /** The projections of what a schema has; undefined if it does not make the live read models those of this version. */
  async function modelsOf(
    connection: Connection,
    schema: SideSchema,
    side: SideModels,
  ): Promise<readonly Projection[] | undefined> {
    const after = { ...(await readStoredVersions(connection)), ...side.versions };
    const fits =
      Object.keys(after).every((name) => after[name] === known[name]) &&
      all.every((name) => after[name] === known[name]);
    const models = projections.filter(({ name }) => name in side.versions);
    const isComplete = withRead(models.map(({ name }) => name)).length === models.length;
    return fits && isComplete && (await isIntact(connection, schema, side)) ? models : undefined;
  }

  /** Builds at least these read models beside the live ones until they have caught up, or continues to. */
  async function build(
    connection: Connection,
    pool: Pool,
    names: readonly string[],
    { onProgress, restarts = false, eventsPerBatch }: RebuildOptions,
  ): Promise<{ readonly models: readonly Projection[]; readonly events: number }> {
    const found = await readSideModels(connection, 'exportd_next');
    if (found) requireNoNewer(found.versions);
    const wanted = withRead(names);
    const started = projections.filter(({ name, version }) => found?.versions[name] === version);
    const continues =
      !restarts &&
      found !== undefined &&
      started.length === Object.keys(found.versions).length &&
      wanted.every((model) => started.includes(model)) &&
      (await isIntact(connection, 'exportd_next', found));
    const models = continues ? started : wanted;
    if (!continues)
      await onConnection(connection, async () => {
        await connection.query('drop schema if exists exportd_next cascade');
        await createSideModels(connection, models);
      });
    const fold = await openNext(connection, models, { onProgress, eventsPerBatch, upcasts });
    await fold.catchUp(pool);
    return { models, events: fold.events };
  }

  /** Makes what was built live, as soon as no statement reads the tables. */
  async function switchNext(
    connection: Connection,
    pool: Pool,
    models: readonly Projection[],
    { onProgress, keepPreviousMs = dayMs }: RebuildOptions,
  ): Promise<Switch> {
    await connection.query('drop schema if exists exportd_previous cascade');
    for (let attempt = 1; ; attempt += 1) {
      const fold = await openNext(connection, models, { onProgress, upcasts });
      await fold.catchUp(pool);
      try {
        const { started, versions, position } = await onConnection(connection, async () => {
          const lock = `set local lock_timeout = ${lockTimeoutMs}; set local synchronous_commit = on`;
          await connection.query(`${lock}; select pg_advisory_xact_lock(${projectionLock})`);
          const started = performance.now();
          if (!(await fold.foldLast())) throw new SwitchDelayed();
          const versions = await swap(connection, models, keepPreviousMs);
          return { started, versions, position: fold.position };
        });
        return { versions, position, locked_ms: Math.round(performance.now() - started) };
      } catch (error) {
        if (!isLocked(error) && !(error instanceof SwitchDelayed)) throw error;
        if (attempt >= maxSwitchAttempts)
          throw new CannotSwitch(
            `The read models are built, and were not switched: ${await describeReaders(pool, models)}. Run "exportd projections switch" later.`,
            { cause: error },
          );
        await sleep(retryDelayMs);
      }
    }
  }

  /** Brings back what a switch has left, if it is of this version. It becomes what is built next. */
  async function reusePrevious(connection: Connection): Promise<readonly Projection[] | undefined> {
    const previous = await readSideModels(connection, 'exportd_previous');
    const models = previous && (await modelsOf(connection, 'exportd_previous', previous));
    if (!models) return undefined;
    await onConnection(connection, () =>
      connection.query(
        `drop schema if exists exportd_next cascade; alter schema exportd_previous rename to exportd_next;
         update exportd_next.build set drop_after = null`,
      ),
    );
    return models;
  }

  return {
    known,
    findChanged,

    /**
     * Builds missing and changed read models beside the live ones, and switches to them.
     * @returns how it switched; undefined if there was nothing to do, or no event
     * @throws ReadModelsDiffer when the live ones are those of a newer version
     */
    ensure: async (pool: Pool, options: RebuildOptions = {}): Promise<Switch | undefined> => {
      requireNoNewer(await readStoredVersions(pool));
      if ((await findChanged(pool)).length === 0) return undefined;
      return asBuilder(pool, async (connection) => {
        // Another process may have done it meanwhile.
        const stored = await readStoredVersions(connection);
        requireNoNewer(stored);
        const changed = await findChanged(connection);
        if (changed.length === 0 || (await createEmpty(connection))) return undefined;
        const isOther = all.some((name) => stored[name] !== known[name]);
        const reused = isOther ? await reusePrevious(connection) : undefined;
        const models = reused ?? (await build(connection, pool, changed, options)).models;
        return switchNext(connection, pool, models, options);
      });
    },

    /**
     * Builds all read models, or those of these names with what they read, and does not switch.
     * @returns how many events they were folded from
     * @throws ReadModelsDiffer when the live ones are those of a newer version
     */
    build: (pool: Pool, options: RebuildOptions & { readonly names?: readonly string[] } = {}) =>
      asBuilder(pool, async (connection) => {
        requireNoNewer(await readStoredVersions(connection));
        const { events } = await build(connection, pool, options.names ?? all, options);
        return events;
      }),

    /** Builds all read models from the journal, and switches to them. @returns how many events they were folded from */
    rebuild: (pool: Pool, options: RebuildOptions = {}): Promise<number> =>
      asBuilder(pool, async (connection) => {
        requireNoNewer(await readStoredVersions(connection));
        if (await createEmpty(connection)) return 0;
        const { models, events } = await build(connection, pool, all, options);
        await switchNext(connection, pool, models, options);
        return events;
      }),

    /**
     * Makes live what was built for this version; without that, what a switch has left of this version.
     * @throws CannotSwitch
     */
    switch: (pool: Pool, options: RebuildOptions = {}): Promise<Switch> =>
      asBuilder(pool, async (connection) => {
        const next = await readSideModels(connection, 'exportd_next');
        const built = next && (await modelsOf(connection, 'exportd_next', next));
        const models = built ?? (next ? undefined : await reusePrevious(connection));
        if (!models) throw new CannotSwitch(await describeSides(connection));
        return switchNext(connection, pool, models, options);
      }),

    /** Reads which versions there are, and how far a rebuild is. */
    status: (pool: Pool): Promise<ReadModelsStatus> => readStatus(pool, known),
  };
}

/** Stores which versions are live. */
async function recordVersions(connection: Connection, models: readonly Projection[]): Promise<void> {
  // `tables`: a later version may have others.
  await connection.query(
    `create table if not exists ${versionsTable} (name text primary key, version integer not null);
     alter table ${versionsTable} add column if not exists tables text[] not null default '{}'`,
  );
  for (const { name, version, owns } of models)
    await connection.query(
      `insert into ${versionsTable} (name, version, tables) values ($1, $2, $3)
       on conflict (name) do update set version = excluded.version, tables = excluded.tables`,
      [name, version, owns],
    );
}

/** Moves tables between the schemas. */
async function swap(
  connection: Connection,
  models: readonly Projection[],
  keepPreviousMs: number,
): Promise<ReadModelVersions> {
  const names = models.map(({ name }) => name);
  const { rows } = await connection.query<{ live: string[]; versions: ReadModelVersions | null }>(
    `select (select jsonb_object_agg(name, version) from ${versionsTable} where name = any($1)) as versions,
       array(select relname::text from pg_class where relnamespace = 'exportd'::regnamespace and relkind = 'r'
         and 'exportd.' || relname in (
           select unnest(tables) from ${versionsTable} where name = any($1) union select unnest($2::text[]))) as live`,
    [names, models.flatMap(({ owns }) => owns)],
  );
  const { live = [], versions } = rows[0] ?? {};
  if (live.length > 0)
    await connection.query(
      `lock table ${live.map((table) => `exportd.${pg.escapeIdentifier(table)}`).join(', ')} in access exclusive mode`,
    );
  await connection.query(`create schema exportd_previous; ${createBuildTable('exportd_previous')}`);
  await connection.query(
    `insert into exportd_previous.build (versions, tables, position, last_event, drop_after)
     select $1, $2, position, last_event, clock_timestamp() + make_interval(secs => $3) from exportd_next.build`,
    [JSON.stringify(versions ?? {}), live, keepPreviousMs / 1_000],
  );
  const { rows: built } = await connection.query<{ versions: ReadModelVersions; tables: string[] }>(
    'select versions, tables from exportd_next.build',
  );
  const move = (table: string, from: string, to: string) =>
    `alter table ${from}.${pg.escapeIdentifier(table)} set schema ${to}`;
  await connection.query(
    [
      ...live.map((table) => move(table, 'exportd', 'exportd_previous')),
      ...(built[0]?.tables ?? []).map((table) => move(table, 'exportd_next', 'exportd')),
      'drop schema exportd_next cascade',
    ].join('; '),
  );
  await recordVersions(connection, models);
  return built[0]?.versions ?? {};
}

/** Why nothing can be made live. */
async function describeSides(connection: Connection): Promise<string> {
  const next = await readSideModels(connection, 'exportd_next');
  const previous = await readSideModels(connection, 'exportd_previous');
  const lines = Object.entries({ exportd_next: next, exportd_previous: previous }).flatMap(([schema, side]) =>
    side
      ? [
          `${schema} has ${Object.entries(side.versions)
            .map(([name, version]) => `${name} ${version}`)
            .join(', ')}`,
        ]
      : [],
  );
  return (
    `This version of exportd has no read models to switch to: ${lines.length > 0 ? lines.join('; ') : 'none were built, and none are left of a switch'}. ` +
    'Run "exportd projections rebuild" of the version that is to be live, or "exportd projections switch" of the one they are of.'
  );
}

/** Reads which versions there are, and how far a rebuild is. @param known those of this version */
async function readStatus(pool: Pool, known: ReadModelVersions): Promise<ReadModelsStatus> {
  const live = await readStoredVersions(pool);
  const next = await readSideModels(pool, 'exportd_next');
  const previous = await readSideModels(pool, 'exportd_previous');
  const { rows } = await pool.query<{ position: number; building: boolean }>(
    `select (select coalesce(max(global_position), 0) from exportd.journal_events) as position,
       ${isBuilding} as building`,
  );
  const { position: journal_position = 0, building = false } = rows[0] ?? {};
  const names = [...new Set([...Object.keys(known), ...Object.keys(live)])];
  return {
    models: names.map((name) => ({
      name,
      known: known[name] ?? 0,
      live: live[name] ?? null,
      next: next?.versions[name] ?? null,
      previous: previous?.versions[name] ?? null,
    })),
    journal_position,
    next: next
      ? {
          position: next.position,
          events: next.events,
          events_per_second: next.events_per_second,
          started_at: next.started_at,
          updated_at: next.updated_at,
          is_running: building,
          remaining_seconds: remainingSeconds(next, journal_position),
        }
      : null,
    previous: previous ? { position: previous.position, drop_after: previous.drop_after } : null,
  };
}

/** Null before the first rate is known. */
function remainingSeconds(
  { position, events_per_second }: SideModels,
  journalPosition: number,
): number | null {
  if (position >= journalPosition) return 0;
  return events_per_second ? Math.ceil((journalPosition - position) / events_per_second) : null;
}

/** Opens what is built, to fold events into it. */
async function openNext(
  connection: Connection,
  models: readonly Projection[],
  options: Pick<RebuildOptions, 'onProgress' | 'eventsPerBatch'> & { readonly upcasts: Upcasts },
) {
  const from = await readSideModels(connection, 'exportd_next');
  if (!from) throw new Error('The schema exportd_next was dropped while it was used.');
  return openSideFold(connection, { models, from }, options);
}

class SwitchDelayed extends Error {}

/** Appends and readers wait so long at most for the locks of a switch that it then gives up, and tries again. */
const lockTimeoutMs = 50;
const retryDelayMs = 250;
/** Five minutes. */
const maxSwitchAttempts = 1_000;

const lockErrors = new Set(['55P03', '40P01']);
const isLocked = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && lockErrors.has(error.code ?? '');

/** Who reads the live tables. */
async function describeReaders(pool: Pool, models: readonly Projection[]): Promise<string> {
  const { rows } = await pool.query<{ reader: string }>(
    `select distinct format('process %s (%s)', activity.pid, activity.application_name) as reader
     from pg_locks held join pg_stat_activity activity using (pid)
     where held.granted and activity.pid <> pg_backend_pid() and held.relation in (
       select to_regclass(name) from unnest($1::text[]) as name)`,
    [models.flatMap(({ owns }) => owns)],
  );
  return rows.length === 0
    ? 'appends and readers leave no moment for it'
    : `${rows.map(({ reader }) => reader).join(', ')} reads them in a long transaction`;
}
