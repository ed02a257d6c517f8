import type { Settings } from '../config/settings.ts';
import type { SortKey } from '../domain/run.ts';
import { checkBarrier, checkBarriers } from './barrier.ts';
import { eventColumnTypes, eventsColumns, eventsQuery } from './events_query.ts';
import type { ModelQuery } from './model_query.ts';
import { readFingerprint } from './read_fingerprint.ts';
import { readFingerprints } from './read_fingerprints.ts';
import { readKeys } from './keys.ts';
import { readPages, statementSettings } from './pages.ts';
import { personsColumns, personsQuery } from './persons_query.ts';
import { columnTypesOf, relationsOf, type RelationSettings } from './relations.ts';
import { connectToSource, type ReadTransaction } from './source_connection.ts';
import { checkStandbyBarrier, checkStandbyBarriers } from './standby_barrier.ts';
import type { RowRange, Source } from './source.ts';

/** Identifies exportd's own sessions, which the barrier ignores. */
export const applicationName = 'exportd';

/** Connections in addition to one per export slot, for counts and barrier checks. */
const spareConnections = 2;

export type SourceSettings = RelationSettings &
  Pick<
    Settings,
    | 'EXPORTD_SOURCE_PAGE_ROWS'
    | 'EXPORTD_SOURCE_PAGE_SIZE'
    | 'EXPORTD_EXPORT_SLOTS'
    | 'EXPORTD_SETTLE_DELAY'
    | 'EXPORTD_SETTLE_POLL_INTERVAL'
    | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT'
  >;

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
}): Source {
  const relations = relationsOf(settings);
  const bounds = { rows: settings.EXPORTD_SOURCE_PAGE_ROWS, bytes: settings.EXPORTD_SOURCE_PAGE_SIZE };
  const connect = (url: string, maxConnections: number) =>
    connectToSource({
      sourceUrl: url,
      applicationName,
      maxConnections,
      statementTimeoutMs: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT,
    });
  const connections = connect(sourceUrl, settings.EXPORTD_EXPORT_SLOTS + spareConnections);
  const primary = primaryUrl === undefined ? undefined : connect(primaryUrl, spareConnections);
  const barrier = {
    settleMs: settings.EXPORTD_SETTLE_DELAY,
    pollMs: settings.EXPORTD_SETTLE_POLL_INTERVAL,
    ownApplicationName: applicationName,
  };

  /** Reads the columns of the relations each time, because a view may be replaced while exportd runs. */
  const queryOf = async (
    connection: ReadTransaction['connection'],
    { model, team_id, selection }: Pick<RowRange, 'model' | 'team_id' | 'selection'>,
  ): Promise<ModelQuery> =>
    model === 'events'
      ? eventsQuery(relations, await eventColumnTypes(connection, relations, selection), {
          team_id,
          selection,
        })
      : personsQuery(relations, await columnTypesOf(connection, relations.persons), { team_id, selection });

  return {
    columns: (model, { query } = {}) =>
      query?.fields.map(({ name, type }) => ({ name, type })) ??
      (model === 'events' ? eventsColumns : personsColumns),
    checkBarrier: (cutoff, state) =>
      primary
        ? checkStandbyBarrier({ primary, standby: connections }, cutoff, state, barrier)
        : connections.read({}, undefined, ({ connection }) =>
            checkBarrier(connection, cutoff, state, barrier),
          ),
    checkBarriers: async (states) => {
      if (states.length === 0) return [];
      return primary
        ? checkStandbyBarriers({ primary, standby: connections }, states, barrier)
        : connections.read({}, undefined, ({ connection }) => checkBarriers(connection, states, barrier));
    },
    async countRows(range, signal) {
      return connections.read({}, signal, async ({ connection, set }) => {
        const query = await queryOf(connection, range);
        await set(statementSettings(query, range));
        const { rows } = await connection.query<{ rows: string }>(query.count());
        return Number(rows[0]?.rows);
      });
    },
    fingerprint: (range, signal) => readFingerprint(connections, queryOf, range, signal),
    fingerprints: (range, intervals, signal) =>
      readFingerprints(connections, queryOf, range, intervals, signal),
    async *keys(range, signal) {
      const query = await connections.read({}, signal, ({ connection }) => queryOf(connection, range));
      yield* readKeys(connections, query, range, signal);
    },
    async splitKeys(range, every, signal) {
      return connections.read({}, signal, async ({ connection, set }) => {
        const query = await queryOf(connection, range);
        await set(statementSettings(query, range, { every }));
        const { rows } = await connection.query<SortKey>(query.splitKeys());
        return rows.map(({ inserted_at, id }) => ({ inserted_at, id }));
      });
    },
    async *blocks(range, keys, options) {
      const query = await connections.read({}, options.signal, ({ connection }) =>
        queryOf(connection, range),
      );
      yield* readPages(connections, query, range, keys, bounds, options);
    },
    close: async () => {
      await Promise.all([connections.close(), primary?.close()]);
    },
  };
}
