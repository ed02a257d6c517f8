import { startServer } from '../../../src/http/server.ts';
import { LaunchError } from '../../../src/local_stack/data_folder.ts';
import type { Report } from '../../../src/local_stack/report.ts';
import { createLogger } from '../../../src/telemetry/logger.ts';
import { copyExport } from '../copies.ts';
import { insertEvents, startOfHour } from '../events.ts';
import {
  backfill,
  createExport,
  deploymentOn,
  exportingProject,
  hoursAfter,
  withExportd,
} from '../exportd.ts';
import { medianOf, rounded, type ResultTable } from '../results.ts';
import { createBenchAccount, measureOnScratch, type ScratchOptions } from '../scratch.ts';

/** The options of the command line. */
interface ConsoleBenchOptions extends ScratchOptions {
  readonly exports: number;
  readonly runs: number;
  readonly repeat: number;
}

/** Result of `npm run bench -- console`. Times are in milliseconds. */
export type ConsoleBenchResult = Awaited<ReturnType<typeof runConsoleBench>>;

const rowsPerHour = 20;
/** Opened before the measurement, so that plans and connections exist. */
const warmUps = 3;
/** The goal of every page. */
const goalMs = 300;

/**
 * Measures the requests of each page of the console on many exports: one export is really exported, then copied. Deletes
 * everything that it created.
 * @throws LaunchError when a process exits or a request fails. @throws the reason of an aborted signal
 */
export async function runConsoleBench(options: ConsoleBenchOptions, report: Report, signal: AbortSignal) {
  const { exports, repeat } = options;
  const hours = Math.ceil(options.runs / exports);
  return measureOnScratch(options, report, signal, async (scratch) => {
    const { stack, pool } = scratch;
    const account = await createBenchAccount(pool);
    const deployment = await deploymentOn(stack, 'console');
    const { settings } = deployment;
    const start = hoursAfter(startOfHour(), -hours);
    const count = hours * rowsPerHour;
    await insertEvents(stack.databaseUrl, { teamId: account.teamId, start, hours, count }, report, signal);
    const exportId = await withExportd(stack, deployment, {}, async () => {
      report(`Exporting ${String(hours)} hours of one export`);
      const project = exportingProject(scratch, deployment, account);
      const created = await createExport(project, { name: 'console' });
      await backfill(project, { exportIds: [created], start, hours });
      return created;
    });
    report(`Copying it ${String(exports - 1)} times`);
    await copyExport(pool, { id: exportId, copies: exports - 1, withReadModels: true });
    // Without a worker, which would start the schedules of all copies.
    const server = await startServer(settings, createLogger('bench', settings));
    const read = async (path: string): Promise<number> => {
      const response = await fetch(`${server.url}/api/projects/${String(account.teamId)}/${path}`, {
        headers: { authorization: `Bearer ${account.apiKey}` },
        signal,
      });
      const body = await response.arrayBuffer();
      if (!response.ok) throw new LaunchError(`GET ${path} responded ${String(response.status)}.`);
      return body.byteLength;
    };
    try {
      const pages = [];
      for (const [page, paths] of Object.entries(pageRequests(exportId, start.toISOString()))) {
        const measured = await measurePage(paths, repeat, read);
        pages.push({ page, requests: paths.length, ...measured });
        report(`${page}: ${measured.median_ms.toFixed(1)} ms`);
      }
      return { exports, runs: hours * exports, pages };
    } finally {
      await server.close();
    }
  });
}

/**
 * The requests that each page of src/console sends when it is opened, relative to the project.
 * @param start of the interval that is shown
 */
export function pageRequests(exportId: string, start: string): Readonly<Record<string, readonly string[]>> {
  const own = `batch_exports/${exportId}`;
  const read = `console/${own}`;
  return {
    exports: ['console/overview/'],
    export: [
      `${own}/`,
      `${read}/timeline/`,
      `${read}/active_runs/`,
      `${own}/runs/?limit=50`,
      `${own}/backfills/`,
      `${own}/logs/`,
      'webhooks/?limit=1000',
    ],
    interval: [
      `${own}/`,
      `${own}/intervals/${encodeURIComponent(start)}/`,
      `${own}/intervals/${encodeURIComponent(start)}/verifications/`,
    ],
    edit: [`${own}/`],
    query: ['console/query/vocabulary/', 'console/query/names/'],
  };
}

/** Measures requests that are sent at once, as a browser sends them. `read` returns the bytes of a response. */
export async function measurePage(
  paths: readonly string[],
  repeat: number,
  read: (path: string) => Promise<number>,
) {
  const times: number[] = [];
  let bytes = 0;
  for (let count = 0; count < warmUps + repeat; count += 1) {
    const startedAt = performance.now();
    const sizes = await Promise.all(paths.map(read));
    if (count >= warmUps) times.push(performance.now() - startedAt);
    bytes = sizes.reduce((sum, size) => sum + size, 0);
  }
  return { bytes, median_ms: rounded(medianOf(times)), maximum_ms: rounded(Math.max(...times)) };
}

/** The result as a table: a line for each page. */
export const consoleTables = ({ exports, runs, pages }: ConsoleBenchResult): readonly ResultTable[] => [
  {
    title: `${exports.toLocaleString('en')} exports, ${runs.toLocaleString('en')} runs`,
    headings: ['page', 'requests', 'kB', 'median ms', 'max ms', `below ${String(goalMs)} ms`],
    rows: pages.map(({ page, requests, bytes, median_ms: median, maximum_ms: maximum }) => [
      page,
      String(requests),
      (bytes / 1_000).toFixed(1),
      median.toFixed(1),
      maximum.toFixed(1),
      median < goalMs ? 'yes' : 'no',
    ]),
  },
];
