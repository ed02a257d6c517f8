import { randomBytes, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { readSettings, type Settings } from '../../../src/config/settings.ts';
import type { Pool } from '../../../src/journal/database.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { builtInQueryKinds } from '../../../src/queries/built_in_kinds.ts';
import { postgresWarehouse, readQueryProject } from '../../../src/queries/postgres_warehouse.ts';
import type { QueryContext, QueryOutput } from '../../../src/queries/query_kind.ts';
import { QueryError } from '../../../src/queries/query_errors.ts';
import { queryRoleOf } from '../../../src/queries/query_role/query_role.ts';
import { setUpQueryRole } from '../../../src/queries/query_role/set_up_query_role.ts';
import {
  connectQueriesToSource,
  queryRelationsOf,
  queryTransaction,
} from '../../../src/queries/query_source.ts';
import type { QueryKinds } from '../../../src/queries/parse_query.ts';
import type { QueryRelations } from '../../../src/queries/source_schema.ts';
import type { SourceConnections } from '../../../src/source/source_connection.ts';
import { connectToScratch, insertEvents, personProperties, startOfHour } from '../events.ts';
import { hoursAfter } from '../exportd.ts';
import {
  medianOf,
  rounded,
  statisticsOf,
  type ResultTable,
  type Skipped,
  type Statistics,
} from '../results.ts';
import { createBenchAccount, measureOnScratch, type ScratchOptions } from '../scratch.ts';
import { analyses } from './analyses.ts';
import { insights, type Insight, type InsightRange } from './insights.ts';
import { plansOf, writePlans } from './plans.ts';

/** The options of the command line. */
interface QueryBenchOptions extends ScratchOptions {
  readonly events: number;
  readonly days: number;
  readonly repeat: number;
  readonly only?: string;
  readonly plans?: string;
}

/** Result of `npm run bench -- query`. */
export type QueryBenchResult = Awaited<ReturnType<typeof runQueryBench>>;

/** An insight, queried by exportd and by hand-written SQL. */
interface InsightResult {
  /** Milliseconds of the hand-written statement, including its transaction. */
  readonly floor_ms: Statistics;
  /** Milliseconds of exportd on one connection: catalog queries, compilation, statements and the result. */
  readonly product_ms: Statistics;
  /** Median over the repeats: time of exportd divided by that of the floor. */
  readonly ratio: number;
  /** Whether both returned the same result. */
  readonly agrees: boolean;
  /** If they differ, the start of each result as JSON. */
  readonly difference: { readonly floor: string; readonly product: string } | null;
}

interface QueryBench {
  /** As the role of queries, under the policies of rows. */
  readonly queries: SourceConnections;
  /** As the owner of the tables, whom no policy restricts. */
  readonly source: SourceConnections;
  readonly kinds: QueryKinds;
  readonly context: Omit<QueryContext, 'warehouse'>;
  readonly relations: QueryRelations;
  readonly range: InsightRange;
  readonly signal: AbortSignal;
}

/** With a single project, a sequential scan of a whole month would be the right plan. */
const projectsOfPlans = 20;
const timeoutMs = 600_000;

/**
 * Creates events of many days in a scratch database and measures typical insights, with exportd and with hand-written SQL;
 * or only writes the plans of exportd's statements. Deletes everything that it created.
 * @throws LaunchError when a server does not start. @throws the reason of an aborted signal
 */
export async function runQueryBench(options: QueryBenchOptions, report: Report, signal: AbortSignal) {
  return measureOnScratch(options, report, signal, async ({ stack, pool }) => {
    const { events, days, repeat, only = '', plans: plansFolder } = options;
    const settings = readSettings({ DATABASE_URL: stack.databaseUrl, EXPORTD_QUERY_SLOTS: '1' });
    const source = connectQueriesToSource(settings);
    const role = scratchRole(stack.databaseUrl);
    const queries = connectQueriesToSource({ ...settings, ...role.settings });
    try {
      const { teamId } = await createBenchAccount(pool);
      const range: InsightRange = { teamId, now: startOfHour() };
      const projects = plansFolder === undefined ? 1 : projectsOfPlans;
      const data = { ...range, events, days, projects };
      const persons = await insertQueryData(stack.databaseUrl, data, report, signal);
      await role.create(pool, settings);
      const { project } = await readQueryProject(pool, teamId);
      const context = {
        project,
        now: range.now,
        row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
        byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
        variables: {},
        progress: () => undefined,
      };
      const kinds = builtInQueryKinds;
      const relations = queryRelationsOf({ ...settings, ...role.settings });
      const results: ({ name: string } & (InsightResult | Skipped))[] = [];
      const measured = plansFolder === undefined ? [...insights, ...analyses] : insights;
      for (const insight of measured.filter(({ name }) => name.includes(only))) {
        const { name } = insight;
        if (plansFolder !== undefined) {
          const plans = await queries.read(queryTransaction(timeoutMs, teamId), signal, ({ connection }) =>
            plansOf(insight, range, kinds, {
              ...context,
              warehouse: postgresWarehouse(connection, { relations, project }),
            }),
          );
          const about = `${events.toLocaleString('en')} events of ${days} days in ${projects} projects`;
          writePlans(plansFolder, insight, about, plans);
          continue;
        }
        const result = await measureInsight(
          { queries, source, kinds, context, relations, range, signal },
          insight,
          repeat,
        );
        report(
          'skipped' in result
            ? `Skipping ${name}: ${result.skipped}`
            : `${name}: ${result.ratio.toFixed(2)} × ${result.floor_ms.median.toFixed(0)} ms`,
        );
        results.push({ name, ...result });
      }
      return { events, days, persons, repeat, insights: results };
    } finally {
      await Promise.all([source.close(), queries.close()]);
      await role.drop(pool);
    }
  });
}

/** A role of queries with the name of the scratch database: roles belong to the whole server. */
function scratchRole(databaseUrl: string) {
  const url = new URL(databaseUrl);
  url.username = url.pathname.slice(1);
  url.password = randomUUID();
  const settings = {
    EXPORTD_QUERY_DATABASE_URL: url.href,
    EXPORTD_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  };
  const role = queryRoleOf(settings);
  if (!role) throw new Error('The settings name no role.');
  return {
    settings,
    async create(pool: Pool, of: Settings): Promise<void> {
      await setUpQueryRole(pool, of, role, { closeCatalog: false });
    },
    async drop(pool: Pool): Promise<void> {
      const name = pg.escapeIdentifier(role.name);
      const { rowCount } = await pool.query('select from pg_roles where rolname = $1', [role.name]);
      if (rowCount === 1) await pool.query(`drop owned by ${name}; drop role ${name}`);
    },
  };
}

/**
 * Inserts the events of some days before `now` and their persons, some of them merged, and analyzes the tables.
 * @returns the number of persons
 */
async function insertQueryData(
  databaseUrl: string,
  data: InsightRange & { readonly events: number; readonly days: number; readonly projects: number },
  report: Report,
  signal: AbortSignal,
): Promise<number> {
  const { teamId, now, events: count, days, projects } = data;
  const hours = days * 24;
  const start = hoursAfter(now, -hours);
  const rows = { teamId, start, count, hours, projects, carryPersons: false };
  await insertEvents(databaseUrl, rows, report, signal);
  const client = await connectToScratch(databaseUrl);
  try {
    const { rowCount } = await client.query(
      `insert into public.persons (team_id, id, properties, created_at, updated_at)
       select team_id, person_id, (${personProperties})::jsonb
         || jsonb_build_object('email', 'user-' || person || '@example.com', 'name', 'Person of user-' || person), first, last
       from (
         select team_id, person_id, split_part(min(distinct_id), '-', 2)::bigint as person, min(timestamp) as first,
           max(timestamp) as last
         from public.events where team_id = $1 group by team_id, person_id
         offset 0
       ) as known`,
      [teamId],
    );
    await client.query(
      // One in fifty distinct ids has been merged into the person of the preceding one.
      `insert into public.person_distinct_ids (team_id, distinct_id, person_id)
       select team_id, distinct_id, case when hashtext(distinct_id) % 50 = 0
         then coalesce(lag(person_id) over (order by distinct_id), person_id) else person_id end
       from (select distinct team_id, distinct_id, person_id from public.events where team_id = $1) as stored`,
      [teamId],
    );
    await client.query('vacuum (analyze) public.persons, public.person_distinct_ids');
    report(`Inserted ${(rowCount ?? 0).toLocaleString('en')} persons`);
    return rowCount ?? 0;
  } finally {
    await client.end();
  }
}

/**
 * Alternates between exportd and the hand-written statement, with the same settings, but only exportd under the policies of
 * rows. A first, untimed execution of each compares their results.
 */
async function measureInsight(
  { queries, source, kinds, context, relations, range, signal }: QueryBench,
  insight: Insight,
  repeat: number,
): Promise<InsightResult | Skipped> {
  const request = insight.query(range);
  const { text, values } = insight.floor(range);
  const settings = queryTransaction(timeoutMs, context.project.team_id);
  const product = (): Promise<QueryOutput> =>
    queries.read(settings, signal, ({ connection }) =>
      kinds.parse(request).run({
        ...context,
        warehouse: postgresWarehouse(connection, { relations, project: context.project }),
      }),
    );
  const asText = { getTypeParser: () => (value: string) => value };
  const floor = () =>
    source.read(settings, signal, async ({ connection }) => {
      const query = { text, values: [...values], rowMode: 'array' as const, types: asText };
      return (await connection.query<(string | null)[]>(query)).rows;
    });

  let output: QueryOutput;
  try {
    output = await product();
  } catch (error) {
    if (error instanceof QueryError) return { skipped: error.message };
    throw error;
  }
  const actual: unknown = JSON.parse(JSON.stringify(insight.actualOf(output)));
  const expected: unknown = JSON.parse(JSON.stringify(insight.expectedOf(await floor(), range)));
  const agrees = isDeepStrictEqual(actual, expected);

  const times = { floor: [] as number[], product: [] as number[] };
  for (let number = 0; number < repeat; number += 1) {
    const order = [['floor', floor] as const, ['product', product] as const];
    for (const [name, work] of number % 2 === 0 ? order : order.toReversed()) {
      const startedAt = performance.now();
      await work();
      times[name].push(performance.now() - startedAt);
    }
  }
  const prefix = (result: unknown): string => JSON.stringify(result).slice(0, 300);
  return {
    floor_ms: statisticsOf(times.floor),
    product_ms: statisticsOf(times.product),
    ratio: rounded(medianOf(times.product.map((ms, index) => ms / (times.floor[index] ?? Number.NaN)))),
    agrees,
    difference: agrees ? null : { floor: prefix(expected), product: prefix(actual) },
  };
}

/** The result as a table. */
export const queryTables = ({ insights: measured }: QueryBenchResult): readonly ResultTable[] => [
  {
    headings: ['insight', 'floor ms', 'product ms', 'ratio', 'results'],
    rows: measured.map((one) =>
      'skipped' in one
        ? [one.name, '-', '-', '-', `skipped: ${one.skipped}`]
        : [
            one.name,
            one.floor_ms.median.toFixed(1),
            one.product_ms.median.toFixed(1),
            one.ratio.toFixed(2),
            one.agrees ? 'equal' : 'DIFFERENT',
          ],
    ),
  },
];

/** @throws LaunchError when results differ */
export function checkQueryResult({ insights: measured }: QueryBenchResult): void {
  const differing = measured.filter((one) => 'agrees' in one && !one.agrees);
  if (differing.length > 0)
    throw new LaunchError(`Results differ: ${differing.map(({ name }) => name).join('; ')}.`);
}
