import type { Settings } from '../config/settings.ts';
import type { SortKey } from '../domain/run.ts';
import { lookAtBarrier } from './barrier.ts';
import { eventColumnTypes, eventsQuery } from './events_query.ts';
import type { ModelQuery } from './model_query.ts';
import { readPages, statementSettings } from './pages.ts';
import { personsQuery } from './persons_query.ts';
import { columnTypesOf, relationsOf, type RelationSettings } from './relations.ts';
import { connectToSource } from './source_connection.ts';
import { lookAtStandbyBarrier } from './standby_barrier.ts';
import { everyRow } from './row_selection.ts';
import type { RowRange, Source } from './source.ts';

/** Marks exportd's own sessions; the barrier leaves them out. */
export const applicationName = 'exportd';

/** Connections beside those of the exports under way: for counts and looks at the barrier. */
const spareConnections = 2;

export type SourceSettings = RelationSettings &
  Pick<
    Settings,
    | 'EXPORTD_PAGE_ROWS'
    | 'EXPORTD_PAGE_BYTES'
    | 'EXPORTD_EXPORT_SLOTS'
    | 'EXPORTD_SETTLE_MS'
    | 'EXPORTD_SETTLE_POLL_MS'
    | 'EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS'
  >;

/**
 * The source in PostgreSQL; connects when first asked. Sessions that write rows to be exported must not go by
 * exportd's own application name, or the barrier does not wait for them.
 * @throws BadRelationName
 */
export function createSource({
  sourceUrl,
  primaryUrl,
  settings,
}: {
  sourceUrl: string;
  /** Where the source's rows are written, when the source is a standby. */
  primaryUrl?: string | undefined;
  settings: SourceSettings;
}): Source {
  const relations = relationsOf(settings);
  const bounds = { rows: settings.EXPORTD_PAGE_ROWS, bytes: settings.EXPORTD_PAGE_BYTES };
  const connect = (url: string, maxConnections: number) =>
    connectToSource({
      sourceUrl: url,
      applicationName,
      maxConnections,
      statementTimeoutMs: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS,
    });
  const connections = connect(sourceUrl, settings.EXPORTD_EXPORT_SLOTS + spareConnections);
  const primary = primaryUrl === undefined ? undefined : connect(primaryUrl, spareConnections);
  const barrier = {
    settleMs: settings.EXPORTD_SETTLE_MS,
    pollMs: settings.EXPORTD_SETTLE_POLL_MS,
    ownApplicationName: applicationName,
  };

  /** Asks for the relations' columns each time: a view may be replaced while exportd runs. */
  const queryOf = (
    { model, selection }: Pick<RowRange, 'model' | 'selection'>,
    signal?: AbortSignal,
  ): Promise<ModelQuery> =>
    connections.read({}, signal, async ({ connection }) =>
      model === 'events'
        ? eventsQuery(relations, await eventColumnTypes(connection, relations), selection)
        : personsQuery(relations, await columnTypesOf(connection, relations.persons), selection),
    );

  return {
    columns: async (model) => (await queryOf({ model, selection: everyRow })).columns,
    lookAtBarrier: (cut, state) =>
      primary
        ? lookAtStandbyBarrier({ primary, standby: connections }, cut, state, barrier)
        : connections.read({}, undefined, ({ connection }) => lookAtBarrier(connection, cut, state, barrier)),
    async countRows(range, signal) {
      const query = await queryOf(range, signal);
      return connections.read(statementSettings(query, range), signal, async ({ connection }) => {
        const { rows } = await connection.query<{ rows: string }>(query.count());
        return Number(rows[0]?.rows);
      });
    },
    async cuts(range, every, signal) {
      const query = await queryOf(range, signal);
      const settings = statementSettings(query, range, { every });
      return connections.read(settings, signal, async ({ connection }) => {
        const { rows } = await connection.query<SortKey>(query.cuts());
        return rows.map(({ inserted_at, id }) => ({ inserted_at, id }));
      });
    },
    async *blocks(range, keys, options) {
      const query = await queryOf(range, options.signal);
      yield* readPages(connections, query, range, keys, bounds, options);
    },
    close: async () => {
      await Promise.all([connections.close(), primary?.close()]);
    },
  };
}
