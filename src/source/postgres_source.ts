import pg from 'pg';
import { createKeptValues } from '../concurrency/kept_values.ts';
import { createSharedCalls } from '../concurrency/shared_calls.ts';
import type { Settings } from '../config/settings.ts';
import type { Model } from '../domain/batch_export.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { checkBarrier, checkBarriers, openBarrier } from './barrier.ts';
import { findColumnProblems, readSourceRole } from './check/check_columns.ts';
import { checkSource } from './check/check_source.ts';
import { mapListedTable } from './check/draft_view.ts';
import { catalogReader, type ReadCatalog, readRelationFacts } from './check/report.ts';
import type { RelationRole } from './contract.ts';
import { eventColumnTypes, eventsColumns, eventsQuery } from './events_query.ts';
import { createKnownColumns } from './known_columns.ts';
import { type ModelQuery, statementSettings } from './model_query.ts';
import { localPageReader, readPages, threadPageReader } from './read_ranges.ts';
import { personsColumns, personsQuery } from './persons_query.ts';
import { allRows, type ExportedColumn, type RowQuery, selectsAllRows } from './row_selection.ts';
import {
  connectToSource,
  countThreadReads,
  type ReadTransaction,
  type SourceConnectionOptions,
  type SourceMonitor,
} from './source_connection.ts';
import { columnTypesOf, type Relations, type RelationSettings, relationsOf } from './relations.ts';
import { type BadRow, type BadRowReader, badRowReader } from './bad_row.ts';
import { findStrayRows } from './stray_rows.ts';
import { attributeRejection } from './selection_rejected.ts';
import type {
  BarrierCheck,
  KeyBounds,
  ReadOptions,
  RowFinder,
  RowRange,
  Source,
  StrayRows,
} from './source.ts';
import { originsReader, type RowOrigins, withUnseenRows } from './row_origins.ts';
import { checkStandbyBarrier, checkStandbyBarriers } from './standby_barrier.ts';
import { createProjectShares, shareByProject } from './project_shares.ts';
import { type CreateModelQuery, readFingerprint, readFingerprints } from './read_fingerprints.ts';
import { findKey, readKeys } from './read_keys.ts';
import { readSample } from './read_sample.ts';

/** A relation of the source lacks columns, or has them with types that exports cannot read. */
export class InvalidRelation extends Error {
  override readonly name = 'InvalidRelation';
}

/** Missing relations and permissions, which PostgreSQL's own message names. */
const clearStates: ReadonlySet<string | undefined> = new Set(['42P01', '42501']);

const rolesOf: Readonly<Record<Model, readonly RelationRole[]>> = {
  events: ['events', 'persons', 'person_distinct_ids'],
  persons: ['persons', 'person_distinct_ids'],
};

/**
 * Finds the columns because of which PostgreSQL rejected a statement. Its message names the types, such as `cannot cast type
 * bigint to uuid`, but neither relation nor column.
 * @returns InvalidRelation, or else the error itself
 */
async function nameInvalidColumns(
  error: unknown,
  model: Model,
  relations: Relations,
  read: ReadCatalog,
): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('42') || clearStates.has(error.code))
    return error;
  try {
    for (const role of rolesOf[model]) {
      const facts = await readRelationFacts(read, relations[role]);
      const problems = typeof facts === 'string' ? [] : await findColumnProblems(read, role, facts);
      if (problems.length > 0)
        return new InvalidRelation(
          `The relation ${relations[role]} of the source does not have the columns that exports need. ${problems
            .map(({ message }) => message)
            .join(' ')} Run "exportd source check" for the SQL that fixes it.`,
        );
    }
    return error;
  } catch {
    // The first error is what the caller has to know.
    return error;
  }
}

/** Identifies exportd's own sessions, which the barrier ignores. */
export const applicationName = 'exportd';

/** Connections for checks of the barrier, which take milliseconds. No other statement may delay them. */
const checkConnections = 2;
/** Connections by default for each interval that is exported at the same time, so that a project's third is one each. */
const connectionsPerSlot = 3;
/** The part of the connections that this thread has besides, for rows that are read again: a resumed block, rejected rows. */
const rereadShare = 1 / 3;

type SourceSettings = RelationSettings &
  Pick<
    Settings,
    | 'EXPORTD_SOURCE_PAGE_ROWS'
    | 'EXPORTD_SOURCE_PAGE_SIZE'
    | 'EXPORTD_MAX_ROW_SIZE'
    | 'EXPORTD_EXPORT_SLOTS'
    | 'EXPORTD_SOURCE_CONNECTIONS'
    | 'EXPORTD_SETTLE_DELAY'
    | 'EXPORTD_SETTLE_POLL_INTERVAL'
    | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT'
  >;

/** The key bounds of a whole range. */
const wholeRange: KeyBounds = { after: null, until: null };

/** The columns of a selection's files: those of its query, else those of the model. */
export const exportedColumns = (
  model: Model,
  { query }: { readonly query?: RowQuery | null } = {},
): readonly ExportedColumn[] =>
  query?.fields.map(({ name, type }) => ({ name, type })) ??
  (model === 'events' ? eventsColumns : personsColumns);

/**
 * Creates the PostgreSQL source. It connects on first use. Sessions that write rows must not use exportd's
 * application name, because the barrier does not wait for them.
 * @throws InvalidRelationName
 */
export function createSource({
  sourceUrl,
  primaryUrl,
  settings,
}: {
  sourceUrl: string;
  /** The primary of the source, if the source is a standby. */
  primaryUrl?: string | undefined;
  settings: SourceSettings;
}): Source & RowFinder & SourceMonitor {
  const relations = relationsOf(settings);
  const bounds = {
    rows: settings.EXPORTD_SOURCE_PAGE_ROWS,
    bytes: settings.EXPORTD_SOURCE_PAGE_SIZE,
    rowBytes: settings.EXPORTD_MAX_ROW_SIZE,
  };
  const optionsOf = (
    url: string,
    maxConnections: number,
    allowsStandby = primaryUrl !== undefined,
  ): SourceConnectionOptions => ({
    sourceUrl: url,
    applicationName,
    maxConnections,
    statementTimeoutMs: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT,
    allowsStandby,
  });
  const connect = (...options: Parameters<typeof optionsOf>) => connectToSource(optionsOf(...options));
  const size = settings.EXPORTD_SOURCE_CONNECTIONS ?? connectionsPerSlot * settings.EXPORTD_EXPORT_SLOTS;
  // Separate pools, so that many slow counts delay no export, and neither delays a check.
  const rereadSize = Math.max(1, Math.floor(size * rereadShare));
  const rereads = shareByProject(connect(sourceUrl, rereadSize), rereadSize);
  const counts = shareByProject(connect(sourceUrl, size), size);
  const inPageShare = createProjectShares(size);
  const threadReads = countThreadReads(rereads.pool);
  const checks = connect(sourceUrl, checkConnections);
  const primary = primaryUrl === undefined ? undefined : connect(primaryUrl, checkConnections, false);
  const barrier = {
    relations,
    settleMs: settings.EXPORTD_SETTLE_DELAY,
    pollMs: settings.EXPORTD_SETTLE_POLL_INTERVAL,
    ownApplicationName: applicationName,
  };

  // A view may be replaced while exportd runs. Columns come from the catalog within milliseconds, whatever the statements of
  // others do.
  const columns = createKnownColumns((model, signal) =>
    checks.read({}, signal, async ({ connection }) =>
      model === 'events'
        ? { model, types: await eventColumnTypes(connection, relations) }
        : { model, types: await columnTypesOf(connection, relations.persons) },
    ),
  );
  const queryOf: CreateModelQuery = async ({ model, team_id, selection }, signal) => {
    const found = await columns.of(model, signal);
    // Persons that have appeared since decide which rows a selection has, and no statement fails without them.
    const mayLack =
      found.model === 'events' &&
      !(found.types.persons && found.types.distinctIds) &&
      !selectsAllRows(selection);
    const known = mayLack ? await columns.readAgain(model, signal) : found;
    return known.model === 'events'
      ? eventsQuery(relations, known.types, { team_id, selection })
      : personsQuery(relations, known.types, { team_id, selection });
  };

  /** Reads with the query of a range, in a transaction with the settings of its statements. */
  const inTransactionOf = async <Result>(
    range: RowRange,
    signal: AbortSignal | undefined,
    more: Parameters<typeof statementSettings>[2],
    work: (connection: ReadTransaction['connection'], query: ModelQuery) => Promise<Result>,
  ): Promise<Result> => {
    const query = await queryOf(range, signal);
    return counts
      .forProject(range.team_id)
      .read(statementSettings(query, range, more), signal, ({ connection }) => work(connection, query));
  };

  /** Where rows come from, as long as no policy hides any. */
  const knownOrigins = createKeptValues<RowOrigins>();
  /** A project that begins with many exports has the same for each. */
  const knownStrayRows = createKeptValues<readonly StrayRows[]>();
  /** At a mark the runs of thousands of exports ask which transactions are open, each after the same time. */
  const firstChecks = createSharedCalls<BarrierCheck>();

  /** Whether PostgreSQL accepts the statement that reads all rows of a range. It reads no row. */
  const acceptsAllRows = async (range: RowRange, signal: AbortSignal | undefined): Promise<boolean> =>
    inTransactionOf({ ...range, selection: allRows }, signal, {}, async (connection, query) => {
      await connection.query(`explain ${query.page(1, { after: false, until: false })}`);
      return true;
    });
  /** Finds and names rows that PostgreSQL cannot read, whatever an export selects. */
  const badRowsOf = async (range: RowRange, signal: AbortSignal | undefined): Promise<BadRowReader> => {
    const connections = counts.forProject(range.team_id);
    const all = { ...range, selection: allRows };
    return badRowReader(connections, await queryOf(all, signal), all, signal);
  };
  /** The id only of events: that of persons is one of an application. */
  const describeBadRow = async (
    row: BadRow,
    range: RowRange,
    signal: AbortSignal | undefined,
  ): Promise<string> => {
    const { inserted_at, id } = row.key;
    const columns = await (await badRowsOf(range, signal)).columnsOf(row);
    const names = exportedColumns(range.model).flatMap(({ name }, index) =>
      columns.has(index) ? [name] : [],
    );
    const named =
      range.model === 'events'
        ? `It is the row ${id}, inserted at ${inserted_at}`
        : `It is a row that changed at ${inserted_at}`;
    return names.length === 0
      ? `${named}.`
      : `${named}: its ${names.length === 1 ? 'column' : 'columns'} ${names.join(', ')}.`;
  };
  /** Finds rows to read around, of an export that replaces what PostgreSQL cannot read. */
  const replacedRowsOf = (
    query: ModelQuery,
    range: RowRange,
    { replacesBadValues, signal }: Pick<ReadOptions, 'replacesBadValues' | 'signal'>,
  ): BadRowReader | null =>
    replacesBadValues === true ? badRowReader(counts.forProject(range.team_id), query, range, signal) : null;
  /** Whose fault a rejected statement is: SelectionRejected, InvalidRelation, InvalidSourceValue, or the error itself. */
  const attribute = async (
    error: unknown,
    range: RowRange,
    signal: AbortSignal | undefined,
  ): Promise<unknown> =>
    nameInvalidColumns(
      await attributeRejection(error, range, {
        acceptsAllRows: () => acceptsAllRows(range, signal),
        findBadRow: async () => (await badRowsOf(range, signal)).find(wholeRange),
        describeBadRow: (row) => describeBadRow(row, range, signal),
        relations:
          range.model === 'events'
            ? relations.events
            : `${relations.persons} or ${relations.person_distinct_ids}`,
      }),
      range.model,
      relations,
      catalogReader(counts.forProject(range.team_id), signal),
    );
  /** Reads rows of a range. */
  const readRange = async <Result>(
    range: RowRange,
    signal: AbortSignal | undefined,
    read: () => Promise<Result>,
  ): Promise<Result> => {
    try {
      return await columns.reading(range.model, signal, read);
    } catch (error) {
      throw await attribute(error, range, signal);
    }
  };
  /** Reads one after another with the query of a range; from the start again if the first fails because columns have changed. */
  const readEach = async function* <Item>(
    range: RowRange,
    signal: AbortSignal,
    read: (query: ModelQuery) => AsyncGenerator<Item>,
  ): AsyncGenerator<Item> {
    const used = columns.used(range.model);
    let isFirst = true;
    try {
      for await (const item of read(await queryOf(range, signal))) {
        isFirst = false;
        yield item;
      }
    } catch (error) {
      if (!isFirst || !(await columns.haveChanged(used, error, signal))) throw error;
      yield* readEach(range, signal, read);
    }
  };
  const readBlocks = async function* <Block>(
    range: RowRange,
    signal: AbortSignal,
    read: (query: ModelQuery) => AsyncGenerator<Block>,
  ): AsyncGenerator<Block> {
    try {
      yield* readEach(range, signal, read);
    } catch (error) {
      throw await attribute(error, range, signal);
    }
  };

  return {
    columns: exportedColumns,
    checkBarrier: async (cutoff, state, signal) => {
      // The intervals of a backfill, whose barrier has opened once: only rows from elsewhere are left to ask for.
      const known = state.phase === 'open' && !primary ? knownOrigins.get('of all relations') : undefined;
      if (known) return withUnseenRows(() => Promise.resolve(known), openBarrier);
      const onStandby =
        primary && (await checkStandbyBarrier({ primary, standby: checks }, cutoff, state, barrier));
      if (onStandby && onStandby.state.phase !== 'open') return onStandby;
      const check = (reading: AbortSignal | undefined): Promise<BarrierCheck> =>
        checks.read({}, reading, async ({ connection }) => {
          const origins = originsReader(connection, relations);
          const checked = onStandby ?? (await checkBarrier(connection, cutoff, state, barrier, origins));
          const complete = await withUnseenRows(origins, checked);
          if (state.phase === 'open') await knownOrigins.read('of all relations', origins);
          return complete;
        });
      return state.phase === 'settling' && !primary && signal
        ? firstChecks.call(JSON.stringify([cutoff, state.checked]), signal, () => check(undefined))
        : check(signal);
    },
    checkBarriers: async (states) => {
      if (states.length === 0) return [];
      return primary
        ? checkStandbyBarriers({ primary, standby: checks }, states, barrier)
        : checks.read({}, undefined, ({ connection }) => checkBarriers(connection, states, barrier));
    },
    countRows: (range, signal) =>
      readRange(range, signal, () =>
        inTransactionOf(range, signal, {}, async (connection, query) => {
          const { rows } = await connection.query<{ rows: string }>(query.count());
          return Number(rows[0]?.rows);
        }),
      ),
    strayRows: ({ model, team_id }, signal) =>
      knownStrayRows.read(`${model} of ${String(team_id)}`, () =>
        counts
          .forProject(team_id)
          .read({}, signal, (transaction) => findStrayRows(transaction, relations, { model, team_id })),
      ),
    fingerprint: (range, signal) =>
      readRange(range, signal, () =>
        readFingerprint(counts.forProject(range.team_id), queryOf, range, signal),
      ),
    fingerprints: (range, intervals, signal) =>
      columns.reading(range.model, signal, () =>
        readFingerprints(counts.forProject(range.team_id), queryOf, range, intervals, signal),
      ),
    keys: (range, signal) =>
      readEach(range, signal, (query) => readKeys(counts.forProject(range.team_id), query, range, signal)),
    findEventKey: (range, uuid, signal) =>
      columns.reading(range.model, signal, async () =>
        findKey(counts.forProject(range.team_id), await queryOf(range, signal), range, uuid, signal),
      ),
    splitKeys: (range, every, signal) =>
      readRange(range, signal, () =>
        inTransactionOf(range, signal, { every }, async (connection, query) => {
          const { rows } = await connection.query<SortKey>(query.splitKeys());
          return rows.map(({ inserted_at, id }) => ({ inserted_at, id }));
        }),
      ),
    blocks: (range, keys, options) =>
      readBlocks(range, options.signal, (query) =>
        readPages(localPageReader(rereads.forProject(range.team_id)), query, range, keys, bounds, {
          ...options,
          lists: counts.forProject(range.team_id),
          badRows: replacedRowsOf(query, range, options),
        }),
      ),
    heldBlocks: (range, keys, options) => {
      const reader = threadPageReader(options.threads, optionsOf(sourceUrl, size), (reading, work) =>
        threadReads.count(() => inPageShare(range.team_id, reading, work)),
      );
      return readBlocks(range, options.signal, (query) =>
        readPages(reader, query, range, keys, bounds, {
          ...options,
          lists: counts.forProject(range.team_id),
          badRows: replacedRowsOf(query, range, options),
        }),
      );
    },
    sample: (range, options) =>
      readRange(range, options.signal, () =>
        readSample(counts.forProject(range.team_id), queryOf, range, options),
      ),
    ping: async (signal) => {
      await checks.read({}, signal, () => Promise.resolve());
    },
    pools: { pages: threadReads.pool, counts: counts.pool, checks: checks.pool },
    check: (teamId, options, signal) =>
      checkSource(counts.forProject(teamId), settings, { ...options, teamId, signal }),
    map: async (teamId, options, signal) => {
      const read = catalogReader(counts.forProject(teamId), signal);
      const { role: reader } = await readSourceRole(read);
      return mapListedTable(read, relations.events, { ...options, teamId, reader });
    },
    close: async () => {
      await Promise.all([rereads.close(), counts.close(), checks.close(), primary?.close()]);
    },
  };
}
