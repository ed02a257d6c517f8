import pg from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Upcasts } from '../domain/event.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { openWholeJournal, type ReadArchive } from '../journal/archives.ts';
import { type ReadModelVersions, readSettledPosition, type StoredEvent } from '../journal/journal.ts';
import { digestOf, type FoldedEvent, type Projection } from './projection.ts';
import { createRowCache, type RowCache } from './row_cache.ts';
import { foldState, streamStatesProjection } from './stream_states.ts';

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
    // The tables grow from nothing, and have no statistics. A lost commit only repeats its batch.
    await connection.query(
      `set statement_timeout = 0; set synchronous_commit = off; set jit = off; set enable_hashjoin = off;
       set enable_mergejoin = off; set enable_seqscan = off`,
    );
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
export class CannotRebuild extends Error {
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

/** Events that one transaction folds. Appends wait for what it writes to the log of PostgreSQL. */
const defaultEventsPerBatch = 5_000;
/** Rows that stay in memory between batches. */
const maxCachedRows = 50_000;
/** A switch folds so many events at most while appends wait. */
export const maxEventsOfSwitch = 300;

/** Folds events into tables beside the live read models. */
export interface SideFold {
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
    readArchive,
    upcasts,
  }: {
    readonly onProgress?: ProgressListener | undefined;
    readonly eventsPerBatch?: number | undefined;
    readonly readArchive?: ReadArchive | undefined;
    readonly upcasts: Upcasts;
  },
): SideFold {
  const side = inSchema(connection, nextSchema, tablesOf(models));
  const journal = openWholeJournal(readArchive);
  let rows = createRowCache(side);
  let { position, events } = from;

  const write = async (batch: readonly StoredEvent[], perSecond: number | null): Promise<void> => {
    const last = batch.at(-1);
    if (!last) return;
    await foldBatch(side, rows, models, batch);
    await connection.query(
      `update ${nextSchema}.build set position = $1, last_event = $2, events = events + $3,
         events_per_second = coalesce($4, events_per_second), updated_at = clock_timestamp()`,
      [last.global_position, last.event_id, batch.length, perSecond],
    );
  };
  const advance = (batch: readonly StoredEvent[]): void => {
    position = batch.at(-1)?.global_position ?? position;
    events += batch.length;
    if (rows.size > maxCachedRows) rows = createRowCache(side);
  };

  return {
    get events() {
      return events;
    },
    get position() {
      return position;
    },
    catchUp: async (pool) => {
      const started = { at: performance.now(), events, position };
      for (;;) {
        const until = await readSettledPosition(connection, projectionLock);
        const before = events;
        const read = (after: number) => journal.read(pool, { after, until, limit: eventsPerBatch, upcasts });
        let next = read(position);
        for (;;) {
          const batch = await next;
          if (batch.length === 0) break;
          // Read while this batch is folded.
          next = read(batch.at(-1)?.global_position ?? until);
          next.catch(() => undefined);
          const seconds = (performance.now() - started.at) / 1_000;
          const rate = (count: number) => (seconds > 0 ? count / seconds : 0);
          await onConnection(connection, () => write(batch, rate(events - started.events)));
          advance(batch);
          const positions = rate(position - started.position);
          onProgress({
            events,
            position,
            journal_position: until,
            events_per_second: rate(events - started.events),
            remaining_seconds: positions > 0 ? (until - position) / positions : 0,
          });
        }
        if (events - before <= maxEventsOfSwitch) return;
      }
    },
    foldLast: async () => {
      // `catchUp` reads it: no append waits for the bucket.
      if (await journal.isArchived(connection, position)) return false;
      const limit = maxEventsOfSwitch + 1;
      const batch = await journal.read(connection, {
        after: position,
        until: Number.MAX_SAFE_INTEGER,
        limit,
        upcasts,
      });
      if (batch.length === limit) return false;
      await write(batch, null);
      advance(batch);
      return true;
    },
  };
}

/** Folds a batch of events into the tables of these projections: row by row in memory, then with few statements. */
async function foldBatch(
  side: Connection,
  rows: RowCache,
  models: readonly Projection[],
  batch: readonly StoredEvent[],
): Promise<void> {
  const tables = models.flatMap((model) => model.batch.tables);
  const folded: FoldedEvent[] = batch.map((stored) => ({ stored, state: undefined }));
  const wantedBy = (model: Projection) => folded.flatMap((event) => model.batch.wants(event));
  if (models.some(({ name }) => name === streamStatesProjection.name)) {
    await rows.prefetch(wantedBy(streamStatesProjection));
    for (const [index, stored] of batch.entries())
      folded[index] = { stored, state: await foldState(rows, stored) };
  }
  for (const model of models) await rows.prefetch(wantedBy(model));
  for (const event of folded)
    for (const model of models) {
      if (!digestOf(event.stored) && (await model.batch.fold(rows, event))) continue;
      // The statements of an append read what is stored.
      await rows.flush(tables);
      await model.apply(side, event.stored, event.state === undefined ? undefined : { state: event.state });
      rows.forget(model.batch.tables);
    }
  await rows.flush(tables);
}
