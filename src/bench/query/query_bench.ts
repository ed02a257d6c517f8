import { loadavg } from 'node:os';
import { readSettings } from '../../config/settings.ts';
import type { Report } from '../../local_stack/report.ts';
import { createPool } from '../../journal/database.ts';
import { productQueryKinds } from '../../queries/product_kinds.ts';
import { readQueryProject } from '../../queries/project.ts';
import { connectQueriesToSource } from '../../queries/query_source.ts';
import { createBenchAccount } from '../account.ts';
import { rounded } from '../figures.ts';
import { describeMachine } from '../machine.ts';
import { createScratchStack } from '../scratch_stack.ts';
import type { QueryBenchDocument } from './document.ts';
import type { InsightRange } from './insight.ts';
import { insights } from './insights/insights.ts';
import { measureInsight } from './measure_insight.ts';
import { keepPlans, plansOf } from './plans.ts';
import { makeQueryData } from './query_data.ts';

export interface QueryBenchOptions {
  readonly events: number;
  /** How many days they are spread over, up to the hour that has begun. */
  readonly days: number;
  readonly repeat: number;
  /** Insights whose names hold this are measured; all of them when it is not given. */
  readonly only?: string | undefined;
  /** Folder of the scratch servers' data; removed afterwards. */
  readonly folder: string;
  readonly useEnvironment: boolean;
  /**
   * Where the plans of the product's statements are kept, over events that many projects share; nothing is measured
   * then. Not kept when it is not given.
   */
  readonly plansFolder?: string | undefined;
}

/** Of one project alone, a month that a query needs whole is rightly read from its beginning to its end. */
const projectsOfPlans = 20;

const hourMs = 3_600_000;

/**
 * Makes events of many days in a scratch database and asks typical insights of the product's own code and of hand-written
 * SQL in turn. Removes all that it made.
 * @throws LaunchError when a server does not start; the signal's reason when it is aborted
 */
export async function runQueryBench(
  options: QueryBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<QueryBenchDocument> {
  const began = new Date();
  const stack = await createScratchStack(options.folder, options, report);
  const pool = createPool(stack.databaseUrl, { max: 2 });
  const settings = readSettings({ DATABASE_URL: stack.databaseUrl, EXPORTD_QUERY_SLOTS: '1' });
  const source = connectQueriesToSource(settings);
  try {
    const { teamId } = await createBenchAccount(pool);
    const now = new Date(Math.floor(began.getTime() / hourMs) * hourMs);
    const range: InsightRange = { teamId, now };
    const { events, days, repeat, only = '', plansFolder } = options;
    const projects = plansFolder === undefined ? 1 : projectsOfPlans;
    const data = { ...range, events, days, projects };
    const persons = await makeQueryData(stack.databaseUrl, data, report, signal);
    const { project } = await readQueryProject(pool, teamId);
    const context = {
      project,
      now,
      row_limit: settings.EXPORTD_QUERY_ROWS,
      byte_limit: settings.EXPORTD_QUERY_RESULT_BYTES,
      variables: {},
      progress: () => undefined,
    };
    const kinds = productQueryKinds(settings);
    const loadBefore = loadavg()[0] ?? 0;
    const results: QueryBenchDocument['insights'][number][] = [];
    for (const insight of insights.filter(({ name }) => name.includes(only))) {
      if (plansFolder !== undefined) {
        const plans = await source.read({}, signal, ({ connection }) =>
          plansOf(insight, range, kinds, { ...context, connection }),
        );
        const shared = `${events.toLocaleString('en')} events of ${days} days in ${projects} projects`;
        keepPlans(plansFolder, insight, shared, plans);
        continue;
      }
      const result = await measureInsight({ source, kinds, context, range, repeat, signal }, insight);
      report(
        'skipped' in result
          ? `${insight.name} is left out: ${result.skipped}`
          : `${insight.name}: ${result.ratio.toFixed(2)} × ${result.floor_ms.median.toFixed(0)} ms`,
      );
      results.push({ name: insight.name, ...result });
    }
    return {
      started_at: began.toISOString(),
      seconds: rounded((Date.now() - began.getTime()) / 1_000),
      machine: await describeMachine(pool),
      load: { before: rounded(loadBefore), after: rounded(loadavg()[0] ?? 0) },
      events,
      days,
      persons,
      repeat,
      insights: results,
    };
  } finally {
    await Promise.all([pool.end(), source.close()]);
    report('Removing the scratch data');
    await stack.remove();
  }
}
