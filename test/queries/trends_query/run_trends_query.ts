import { inTransaction, type Pool } from '../../../src/journal/database.ts';
import { openDialectReader } from '../../../src/queries/dialect_reader.ts';
import { postgresWarehouse } from '../../../src/queries/postgres_warehouse.ts';
import type { QueryContext, QueryProject } from '../../../src/queries/query_kind.ts';
import { trendsActors, type TrendsPoint } from '../../../src/queries/trends_query/actors.ts';
import { trendsQueryKind } from '../../../src/queries/trends_query/index.ts';
import type { TrendsQuery } from '../../../src/queries/trends_query/schema.ts';
import { queryRelationsOf } from '../../../src/queries/query_source.ts';

/** The relations that the migrations create. */
const ofMigrations = queryRelationsOf({
  EXPORTD_EVENTS_RELATION: 'public.events',
  EXPORTD_PERSONS_RELATION: 'public.persons',
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.person_distinct_ids',
});

/** One item of `results`. */
export interface Result {
  readonly label: string;
  readonly data: readonly number[];
  readonly days: readonly string[];
  readonly labels: readonly string[];
  readonly count: number;
  readonly order: number;
  readonly aggregated_value?: number;
  readonly breakdown_value?: string | number | readonly string[];
  readonly compare_label?: 'current' | 'previous';
  readonly action: Readonly<Record<string, unknown>> | null;
}

/** A query with its defaults, as parsed by the endpoint. */
const trendsQuery = (query: object): TrendsQuery =>
  trendsQueryKind.schema.parse({ kind: 'TrendsQuery', series: [{ kind: 'EventsNode' }], ...query });

/** Runs a function like a query: in one READ ONLY transaction. */
export const asQuery = <Answer>(
  pool: Pool,
  project: QueryProject,
  now: Date,
  run: (context: QueryContext) => Promise<Answer>,
  relations = ofMigrations,
): Promise<Answer> =>
  inTransaction(pool, async (connection) => {
    await connection.query("set transaction read only; set local statement_timeout = '3min'");
    return run({
      warehouse: postgresWarehouse(connection, { relations, project }),
      project,
      now,
      row_limit: 10_000,
      byte_limit: 50_000_000,
      variables: {},
      progress: () => undefined,
    });
  });

/** Runs a query. */
export async function runTrendsQuery(
  pool: Pool,
  query: object,
  project: QueryProject,
  now: Date,
): Promise<{ readonly results: readonly Result[]; readonly hasMore: boolean }> {
  const parsed = trendsQuery(query);
  const response = await asQuery(pool, project, now, (context) => trendsQueryKind.run(parsed, context));
  return { results: response.results as readonly Result[], hasMore: response.hasMore ?? false };
}

/** The distinct ids in a sample of a project's events. */
export const sampledIds = (
  pool: Pool,
  project: QueryProject,
  now: Date,
  factor: number,
): Promise<ReadonlySet<unknown>> =>
  asQuery(pool, project, now, async (context) => {
    const reader = await openDialectReader(context);
    const { rows } = await reader.read(`SELECT DISTINCT distinct_id FROM events SAMPLE ${factor}`);
    return new Set(rows.flat());
  });

/** The actors behind a point, with their number of events. */
export async function actorsOf(
  pool: Pool,
  query: object,
  point: TrendsPoint,
  project: QueryProject,
  now: Date,
): Promise<readonly { readonly id: unknown; readonly events: number }[]> {
  return asQuery(pool, project, now, async (context) => {
    const reader = await openDialectReader(context);
    const about = { project, now, reader, attr: 'query__source' };
    const { rows } = await reader.read(await trendsActors(trendsQuery(query), point, about));
    return rows.map(([id, events]) => ({ id, events: Number(events) }));
  });
}
