import { loadavg } from 'node:os';
import { readSettings } from '../../config/settings.ts';
import type { Report } from '../../local_stack/report.ts';
import { createPool } from '../../journal/database.ts';
import { builtInQueryKinds } from '../../queries/built_in_kinds.ts';
import { readQueryProject } from '../../queries/project.ts';
import { postgresConnection } from '../../queries/query_connection.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import { readSourceSchema } from '../../queries/source_schema.ts';
import { relationsOf } from '../../source/relations.ts';
import { createBenchAccount } from '../bench_account.ts';
import { rounded } from '../statistics.ts';
import { describeMachine } from '../describe_machine.ts';
import { createScratchStack } from '../scratch_stack.ts';
import { startOfHour } from '../start_of_hour.ts';
import type { QueryBenchResult } from './result.ts';
import type { InsightRange } from './insight.ts';
import { insights } from './insights/insights.ts';
import { measureCompileTimes } from './compile_times.ts';
import { measureLatency } from './latency.ts';
import { measureServerLoad } from './server_load.ts';
import { measureInsight } from './measure_insight.ts';
import { writePlans, plansOf } from './plans.ts';
import { insertQueryData } from './insert_query_data.ts';

export interface QueryBenchOptions {
  readonly events: number;
  /** Number of days that they cover, until the current hour. */
  readonly days: number;
  readonly repeat: number;
  /** Characters of the longest text that is compiled. */
  readonly textLength: number;
  /** Only insights whose name contains this, or `latency`, `compile times` or `server load`. */
  readonly only?: string | undefined;
  /** Folder of the scratch servers' data, deleted afterwards. */
  readonly folder: string;
  readonly useEnvironment: boolean;
  /**
   * Writes the plans of exportd's statements to this folder instead of measuring, for events of many projects.
   */
  readonly plans?: string;
}

/** With a single project, a sequential scan of a whole month would be the right plan. */
const projectsOfPlans = 20;

const latencyName = 'latency';
const compileName = 'compile times';
const loadName = 'server load';

/**
 * Creates events of many days in a scratch database and measures typical insights, with exportd and with hand-written SQL.
 * Deletes everything that it created.
 * @throws LaunchError when a server does not start. @throws the reason of an aborted signal
 */
export async function runQueryBench(
  options: QueryBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<QueryBenchResult> {
  const startedAt = new Date();
  const stack = await createScratchStack(options.folder, options, report);
  const pool = createPool(stack.databaseUrl, { max: 2 });
  const settings = readSettings({ DATABASE_URL: stack.databaseUrl, EXPORTD_QUERY_SLOTS: '1' });
  const source = connectQueriesToSource(settings);
  try {
    const account = await createBenchAccount(pool);
    const { teamId } = account;
    const now = new Date(startOfHour(startedAt.getTime()));
    const range: InsightRange = { teamId, now };
    const { events, days, repeat, only = '', plans: plansFolder } = options;
    const projects = plansFolder === undefined ? 1 : projectsOfPlans;
    const data = { ...range, events, days, projects };
    const persons = await insertQueryData(stack.databaseUrl, data, report, signal);
    const { project } = await readQueryProject(pool, teamId);
    const context = {
      project,
      now,
      row_limit: settings.EXPORTD_QUERY_MAX_ROWS,
      byte_limit: settings.EXPORTD_QUERY_MAX_RESULT_SIZE,
      variables: {},
      progress: () => undefined,
    };
    const kinds = builtInQueryKinds(settings);
    const loadBefore = loadavg()[0] ?? 0;
    const results: QueryBenchResult['insights'][number][] = [];
    for (const insight of insights.filter(({ name }) => name.includes(only))) {
      if (plansFolder !== undefined) {
        const plans = await source.read({}, signal, ({ connection }) =>
          plansOf(insight, range, kinds, { ...context, connection: postgresConnection(connection) }),
        );
        const shared = `${events.toLocaleString('en')} events of ${days} days in ${projects} projects`;
        writePlans(plansFolder, insight, shared, plans);
        continue;
      }
      const result = await measureInsight({ source, kinds, context, range, repeat, signal }, insight);
      report(
        'skipped' in result
          ? `Skipping ${insight.name}: ${result.skipped}`
          : `${insight.name}: ${result.ratio.toFixed(2)} × ${result.floor_ms.median.toFixed(0)} ms`,
      );
      results.push({ name: insight.name, ...result });
    }
    const latency =
      plansFolder === undefined && latencyName.includes(only)
        ? await measureLatency({ stack, pool, heavy: account, signal }, report)
        : null;
    const server_load =
      plansFolder === undefined && loadName.includes(only)
        ? await measureServerLoad({ stack, account, signal }, report)
        : [];
    const schema = await source.read({}, signal, ({ connection }) =>
      readSourceSchema(postgresConnection(connection), relationsOf(settings), project),
    );
    const compile_times =
      plansFolder === undefined && compileName.includes(only)
        ? await measureCompileTimes(schema, project, now, { repeat, maxLength: options.textLength })
        : [];
    return {
      started_at: startedAt.toISOString(),
      seconds: rounded((Date.now() - startedAt.getTime()) / 1_000),
      machine: await describeMachine(pool),
      load: { before: rounded(loadBefore), after: rounded(loadavg()[0] ?? 0) },
      events,
      days,
      persons,
      repeat,
      insights: results,
      latency,
      server_load,
      compile_times,
    };
  } finally {
    await Promise.all([pool.end(), source.close()]);
    report('Deleting the scratch data');
    await stack.remove();
  }
}
