import pg from 'pg';
import { setImmediate as pause, setTimeout as sleep } from 'node:timers/promises';
import type { Upcasts } from '../domain/event.ts';
import type { Connection, Pool } from '../journal/database.ts';
import {
  type FoldedEvent,
  readEventsAfter,
  type ReadModelVersions,
  readSettledPosition,
  type StoredEvent,
} from '../journal/journal.ts';
import { type Projection } from './projection.ts';
import { createRowCache, type RowCache } from './row_cache.ts';
import { sendWrites } from './row_writes.ts';
import { foldState, stateWantedBy, streamStatesProjection } from './stream_states.ts';

/** Advisory lock: appends acquire it shared, a switch of the read models exclusively. */
export const projectionLock = 7_116_201;
/** Advisory lock of the session or transaction that builds, switches or drops read models. */
export const builderLock = 7_116_202;

/** Where a new version is built, and where a switch leaves the former one. */
export type SideSchema = 'exportd_next' | 'exportd_previous';

const nextSchema: SideSchema = 'exportd_next';

/** Read models beside the live ones: tables that are those of the journal up to a position. */
export interface SideModels {
  readonly versions: ReadModelVersions;
  /** Without their schema. */
  readonly tables: readonly string[];
  readonly position: number;
  /** The event at the position. A journal that was restored from a backup may have another one there. */
  readonly last_event: string | null;
  readonly events: number;
  /** How many events were folded each second of late. */
  readonly events_per_second: number | null;
  readonly started_at: string;
  readonly updated_at: string;
  /** When the former version is dropped; null for one that is built. */
  readonly drop_after: string | null;
}

/** How far a rebuild is. */
export interface RebuildProgress {
  /** Folded so far, by this process and those before it. */
  readonly events: number;
  readonly position: number;
  /** The last position of the journal. */
  readonly journal_position: number;
  readonly events_per_second: number;
  readonly remaining_seconds: number;
}

export type ProgressListener = (progress: RebuildProgress) => void;

const bareName = (table: string): string => table.replace(/^exportd\./, '');
const tablesOf = (models: readonly Projection[]): string[] =>
  models.flatMap(({ owns }) => owns).map((table) => bareName(table));

const builderPollMs = 200;

/** The tables grow from nothing, and have no statistics. A lost commit only repeats its batch. Appends need the other cores. */
const builderSettings = `set statement_timeout = 0; set synchronous_commit = off; set jit = off; set enable_hashjoin = off;
  set enable_mergejoin = off; set enable_seqscan = off; set max_parallel_workers_per_gather = 0`;

/**
 * Runs `work` on a connection of its own while no other process builds or switches read models; waits for one that does.
 * If this process is killed, PostgreSQL releases the lock.
 */
export async function asBuilder<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.connect();
  try {
    await connection.query(builderSettings);
    for (;;) {
      const { rows } = await connection.query<{ locked: boolean }>(
        'select pg_try_advisory_lock($1) as locked',
        [builderLock],
      );
      if (rows[0]?.locked) break;
      await sleep(builderPollMs);
    }
    return await work(connection);
  } finally {
    // At once: PostgreSQL notices the end of a session a little later.
    await connection.query('select pg_advisory_unlock($1)', [builderLock]).catch(() => undefined);
    // Ends the session with its settings.
    connection.release(true);
  }
}

/** SQL condition: a process builds or switches read models. */
export const isBuilding = `exists (select from pg_locks where locktype = 'advisory' and objid = ${builderLock} and granted
  and database = (select oid from pg_database where datname = current_database()))`;

/** Runs `work` in a transaction of a connection. */
export async function onConnection<Result>(
  connection: Connection,
  work: () => Promise<Result>,
): Promise<Result> {
  await connection.query('begin');
  try {
    const result = await work();
    await connection.query('commit');
    return result;
  } catch (error) {
    await connection.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Reads what is in a schema beside the live read models; undefined if there is nothing. */
export async function readSideModels(
  database: Pool | Connection,
  schema: SideSchema,
): Promise<SideModels | undefined> {
  const { rows } = await database.query<{ present: boolean }>(
    'select to_regclass($1) is not null as present',
    [`${schema}.build`],
  );
  if (!rows[0]?.present) return undefined;
  const found = await database.query<SideModels>(`select * from ${schema}.build`);
  return found.rows[0];
}

/** Whether these are the read models of a journal which was not set back since, with all of their tables. */
export async function isIntact(
  connection: Connection,
  schema: SideSchema,
  { tables, position, last_event }: SideModels,
): Promise<boolean> {
  const { rows } = await connection.query<{ intact: boolean }>(
    `select (select bool_and(to_regclass($1 || '.' || name) is not null) from unnest($2::text[]) as name)
       and $3 <= coalesce(pg_sequence_last_value(
         pg_get_serial_sequence('exportd.journal_events', 'global_position')::regclass), 0)
       and not exists (
         -- It may have been collapsed since, and others after it.
         select from exportd.journal_events where global_position = $3 and event_id <> $4) as intact`,
    [schema, tables, position, last_event],
  );
  return rows[0]?.intact === true;
}

/** SQL: creates the table that says what a schema has. */
export const createBuildTable = (schema: SideSchema): string => `
  create table ${schema}.build (
    versions jsonb not null,
    tables text[] not null,
    position bigint not null default 0,
    last_event uuid,
    events bigint not null default 0,
    events_per_second float8,
    started_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    drop_after timestamptz
  )`;

const insufficientPrivilege = '42501';

/** Read models cannot be built beside the live ones. */
class CannotRebuild extends Error {
  override readonly name = 'CannotRebuild';
}

/** Creates the empty tables of a new version, with the privileges that roles have on the live ones. */
export async function createSideModels(connection: Connection, models: readonly Projection[]): Promise<void> {
  const schema = nextSchema;
  const tables = tablesOf(models);
  try {
    await connection.query(`create schema ${schema}`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== insufficientPrivilege) throw error;
    throw new CannotRebuild(
      `Read models are rebuilt in a schema of their own, which this role may not create: ${error.message}. Grant it "create" on the database.`,
      { cause: error },
    );
  }
  const side = inSchema(connection, schema, tables);
  for (const model of models) await side.query(model.tables);
  const { rows } = await connection.query<{ grant: string }>(
    `select format('grant %s on ${schema}.%I to %s', privilege.privilege_type, live.relname,
       case privilege.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(privilege.grantee)) end) as grant
     from pg_class live, aclexplode(live.relacl) privilege
     where live.relnamespace = 'exportd'::regnamespace and live.relname = any($1) and privilege.grantee <> live.relowner`,
    [tables],
  );
  for (const { grant } of rows) await connection.query(grant);
  await connection.query(createBuildTable(schema));
  await connection.query(`insert into ${schema}.build (versions, tables) values ($1, $2)`, [
    JSON.stringify(Object.fromEntries(models.map(({ name, version }) => [name, version]))),
    tables,
  ]);
}

/** The connection, with tables of another schema in the place of these tables of `exportd`. */
function inSchema(connection: Connection, schema: SideSchema, tables: readonly string[]): Connection {
  const names = new RegExp(`\\bexportd\\.(${tables.join('|')})\\b`, 'g');
  const rename = (text: string) => text.replaceAll(names, `${schema}.$1`);
  const query = (statement: string | pg.QueryConfig, values?: unknown[]) =>
    typeof statement === 'string'
      ? connection.query(rename(statement), values)
      : connection.query(rename(statement.text), statement.values);
  return Object.assign(Object.create(connection) as Connection, { query });
}

/** Events that one transaction folds: enough that most runs begin and end in it, and their rows are written once. */
const defaultEventsPerBatch = 20_000;
/** Events that are folded without a pause, in which this process can send what the former batch has changed. */
const eventsPerPause = 50;
/** Rows that stay in memory between batches. */
const maxCachedRows = 50_000;
/** A switch folds so many events at most while appends wait. */
const maxEventsOfSwitch = 300;

/** Folds events into tables beside the live read models. */
interface SideFold {
  /** Folds what the journal has, until a round has little to fold. Resumes where the last process was. */
  catchUp(pool: Pool): Promise<void>;
  /**
   * Folds the last events, in the transaction of a switch, which excludes appends. After a rollback, open another one.
   * @returns false if there are too many
   */
  foldLast(): Promise<boolean>;
  readonly events: number;
  readonly position: number;
}

/** Opens the read models that are built, to fold events into them. */
export function openSideFold(
  connection: Connection,
  { models, from }: { readonly models: readonly Projection[]; readonly from: SideModels },
  {
    onProgress = () => undefined,
    eventsPerBatch = defaultEventsPerBatch,
    upcasts,
  }: {
    readonly onProgress?: ProgressListener | undefined;
    readonly eventsPerBatch?: number | undefined;
    readonly upcasts: Upcasts;
  },
): SideFold {
  const names = tablesOf(models);
  const tables = models.flatMap(({ cached }) => cached);
  const side = inSchema(connection, nextSchema, names);
  let rows = createRowCache(side);
  let { position, events } = from;

  /** Folds a batch in memory. @returns what writes the changes of the batch, in its transaction */
  async function fold(batch: readonly FoldedEvent[]) {
    for (const [index, event] of batch.entries()) {
      if (index % eventsPerPause === 0) await pause();
      for (const model of models) model.fold(rows, event);
    }
    const changes = rows.takeChanges(tables);
    const last = batch.at(-1)?.stored;
    position = last?.global_position ?? position;
    events += batch.length;
    const reached = { position, events };
    const write = async (perSecond: number | null): Promise<void> => {
      await sendWrites(side, changes);
      await connection.query(
        `update ${nextSchema}.build set position = $1, last_event = $2, events = $3,
           events_per_second = coalesce($4, events_per_second), updated_at = clock_timestamp()`,
        [reached.position, last?.event_id, reached.events, perSecond],
      );
    };
    return { reached, write };
  }

  const started = { at: performance.now(), events, position };
  /** What is folded so far, by the clock. */
  function progressOf(reached: { readonly position: number; readonly events: number }, until: number) {
    const seconds = (performance.now() - started.at) / 1_000;
    const rate = (count: number) => (seconds > 0 ? count / seconds : 0);
    const positions = rate(reached.position - started.position);
    return {
      ...reached,
      journal_position: until,
      events_per_second: rate(reached.events - started.events),
      remaining_seconds: positions > 0 ? (until - reached.position) / positions : 0,
    };
  }

  /** Folds the events up to a position. What a batch has changed is written while the next one is read and folded. */
  async function foldUntil(reader: Connection, until: number): Promise<void> {
    const sideReader = inSchema(reader, nextSchema, names);
    const read = (after: number) => readEventsAfter(reader, { after, until, limit: eventsPerBatch, upcasts });
    let written: Promise<void> = Promise.resolve();
    for (let next = read(position); ;) {
      const batch = await next;
      if (batch.length === 0) break;
      if (rows.size > maxCachedRows) {
        await written;
        rows = createRowCache(sideReader);
      }
      rows.readWith(sideReader);
      const prefetched = await prefetchRows(rows, models, batch);
      next = read(batch.at(-1)?.global_position ?? until);
      next.catch(() => undefined);

      const { reached, write } = await fold(prefetched);
      await written;
      written = connection.query('begin').then(async () => {
        await write(progressOf(reached, until).events_per_second);
        await connection.query('commit');
        onProgress(progressOf(reached, until));
      });
      written.catch(() => undefined);
    }
    await written;
  }

  return {
    get events() {
      return events;
    },
    get position() {
      return position;
    },
    catchUp: (pool) =>
      withReader(pool, async (reader) => {
        for (let folded = Infinity; folded > maxEventsOfSwitch;) {
          const before = events;
          await foldUntil(reader, await readSettledPosition(connection, projectionLock));
          folded = events - before;
        }
      }),
    foldLast: async () => {
      const limit = maxEventsOfSwitch + 1;
      const batch = await readEventsAfter(connection, {
        after: position,
        until: Number.MAX_SAFE_INTEGER,
        limit,
        upcasts,
      });
      if (batch.length === limit) return false;
      if (batch.length === 0) return true;
      rows.readWith(side);
      const { write } = await fold(await prefetchRows(rows, models, batch));
      await write(null);
      return true;
    },
  };
}

/** Runs `work` with a connection that reads what is built, beside the one that writes it. */
async function withReader(pool: Pool, work: (reader: Connection) => Promise<void>): Promise<void> {
  const reader = await pool.connect();
  try {
    await reader.query(builderSettings);
    await work(reader);
  } finally {
    // Ends the session with its settings.
    reader.release(true);
  }
}

/** Reads the rows that a batch needs, and folds its streams' states. */
async function prefetchRows(
  rows: RowCache,
  models: readonly Projection[],
  batch: readonly StoredEvent[],
): Promise<readonly FoldedEvent[]> {
  const states: ReturnType<typeof foldState>[] = [];
  if (models.some(({ name }) => name === streamStatesProjection.name)) {
    await rows.prefetch(batch.map((stored) => stateWantedBy(stored)));
    for (const [index, stored] of batch.entries()) {
      if (index % eventsPerPause === 0) await pause();
      states.push(foldState(rows, stored));
    }
  }
  const folded = batch.map(
    (stored, index) => ({ stream_type: stored.stream_type, stored, ...states[index] }) as FoldedEvent,
  );
  await rows.prefetch(models.flatMap((model) => folded.flatMap((event) => model.wants(event))));
  return folded;
}
