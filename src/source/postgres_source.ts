import type { Model } from '../domain/batch_export.ts';
import type { Settings } from '../config/settings.ts';
import { lookAtBarrier } from './barrier.ts';
import { eventsQuery } from './events_query.ts';
import type { ModelQuery } from './model_query.ts';
import { queryParameters, readPages } from './pages.ts';
import { personsQuery } from './persons_query.ts';
import { columnTypesOf, relationsOf, type RelationSettings } from './relations.ts';
import { connectToSource } from './source_connection.ts';
import type { Source } from './source.ts';

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
  settings,
}: {
  sourceUrl: string;
  settings: SourceSettings;
}): Source {
  const relations = relationsOf(settings);
  const bounds = { rows: settings.EXPORTD_PAGE_ROWS, bytes: settings.EXPORTD_PAGE_BYTES };
  const connections = connectToSource({
    sourceUrl,
    applicationName,
    maxConnections: settings.EXPORTD_EXPORT_SLOTS + spareConnections,
    statementTimeoutMs: settings.EXPORTD_SOURCE_STATEMENT_TIMEOUT_MS,
  });

  /** Asks for the relation's columns each time: a view may be replaced while exportd runs. */
  const queryOf = (model: Model, signal?: AbortSignal): Promise<ModelQuery> =>
    connections.read({}, signal, async ({ connection }) =>
      model === 'events'
        ? eventsQuery(relations, await columnTypesOf(connection, relations.events))
        : personsQuery(relations, await columnTypesOf(connection, relations.persons)),
    );

  return {
    columns: async (model) => (await queryOf(model)).columns,
    lookAtBarrier: (cut, state) =>
      connections.read({}, undefined, ({ connection }) =>
        lookAtBarrier(connection, cut, state, {
          settleMs: settings.EXPORTD_SETTLE_MS,
          pollMs: settings.EXPORTD_SETTLE_POLL_MS,
          ownApplicationName: applicationName,
        }),
      ),
    async countRows(range, signal) {
      const query = await queryOf(range.model, signal);
      return connections.read(queryParameters(range, null), signal, async ({ connection }) => {
        const { rows } = await connection.query<{ rows: string }>(query.count());
        return Number(rows[0]?.rows);
      });
    },
    cuts: () => Promise.resolve([]),
    async *blocks(range, keys, { signal }) {
      yield* readPages(connections, await queryOf(range.model, signal), range, keys, bounds, signal);
    },
    close: () => connections.close(),
  };
}
