import { setTimeout as delay } from 'node:timers/promises';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { Report } from '../../local_stack/report.ts';
import type { Pool } from '../../journal/database.ts';
import { readSettings } from '../../config/settings.ts';
import { startServer } from '../../http/server.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createBenchAccount, type BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { insertEvents } from '../insert_events.ts';
import { measureOnScratch, type ScratchOptions } from '../measure_on_scratch.ts';
import { createExport } from '../schedule/create_exports.ts';
import { withExportd } from '../schedule/with_exportd.ts';
import { medianOf, rounded } from '../statistics.ts';
import { startOfHour } from '../start_of_hour.ts';
import { copyExport } from './copy_exports.ts';
import { pageRequests, type ShownInterval } from './page_requests.ts';
import type { ConsoleBenchResult, MeasuredPage } from './result.ts';

export interface ConsoleBenchOptions extends ScratchOptions {
  readonly exports: number;
  /** Runs of all exports together. */
  readonly runs: number;
  /** How often each page is measured. */
  readonly repeat: number;
}

const hourMs = 3_600_000;
const rowsPerHour = 20;
const pollMs = 250;
/** Opened before the measurement, so that plans and connections exist. */
const warmUps = 3;

/**
 * Measures the requests of each page of the console on many exports: one export is really exported, then copied. Deletes
 * everything that it created.
 * @throws LaunchError when a process exits or a request fails. @throws the reason of an aborted signal
 */
export async function runConsoleBench(
  options: ConsoleBenchOptions,
  report: Report,
  signal: AbortSignal,
): Promise<ConsoleBenchResult> {
  const { exports, repeat } = options;
  const hours = Math.ceil(options.runs / exports);
  return measureOnScratch(options, report, async ({ stack, pool }) => {
    const account = await createBenchAccount(pool);
    const { baseUrl, environment } = await exportdEnvironment(stack, 'console');
    const start = new Date(startOfHour() - hours * hourMs);
    const count = hours * rowsPerHour;
    await insertEvents(stack.databaseUrl, { teamId: account.teamId, start, hours, count }, report, signal);
    const shown = await withExportd(
      { stack, baseUrl, environment, profileFolder: undefined },
      {},
      async () => {
        report(`Exporting ${String(hours)} hours of one export`);
        const api = createApiClient(baseUrl, account.teamId, account.apiKey);
        const exportId = await createExport(stack, api, { name: 'console', interval: 'hour', paused: true });
        await api.request('POST', `${exportId}/backfill/`, {
          start_at: start.toISOString(),
          end_at: new Date(start.getTime() + hours * hourMs).toISOString(),
        });
        await waitUntilExported(pool, exportId, signal);
        return { exportId, start: start.toISOString() };
      },
    );
    report(`Copying it ${String(exports - 1)} times`);
    await copyExport(pool, shown.exportId, exports - 1);
    // Without a worker, which would start the schedules of all copies.
    const settings = readSettings({ ...environment });
    const server = await startServer(settings, createLogger('bench', settings));
    try {
      const pages: MeasuredPage[] = [];
      for (const [page, paths] of Object.entries(pageRequests(shown))) {
        const measured = await measurePage({ baseUrl: server.url, account, paths, repeat, signal });
        pages.push({ page, ...measured });
        report(`${page}: ${measured.median_ms.toFixed(1)} ms`);
      }
      return { exports, runs: hours * exports, pages };
    } finally {
      await server.close();
    }
  });
}

async function waitUntilExported(
  pool: Pool,
  exportId: ShownInterval['exportId'],
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await pool.query<{ status: string }>(
      'select status from exportd.backfills where batch_export_id = $1 and finished_at is not null',
      [exportId],
    );
    if (rows[0]?.status === 'Completed') return;
    if (rows[0]) throw new LaunchError(`The backfill ended ${rows[0].status}.`);
    await delay(pollMs, undefined, { signal });
  }
}

interface PageMeasurement {
  readonly baseUrl: string;
  readonly account: BenchAccount;
  readonly paths: readonly string[];
  readonly repeat: number;
  readonly signal: AbortSignal;
}

async function measurePage(measurement: PageMeasurement): Promise<Omit<MeasuredPage, 'page'>> {
  const { baseUrl, account, paths, repeat, signal } = measurement;
  const read = async (path: string): Promise<number> => {
    const response = await fetch(`${baseUrl}/api/projects/${String(account.teamId)}/${path}`, {
      headers: { authorization: `Bearer ${account.apiKey}` },
      signal,
    });
    const body = await response.arrayBuffer();
    if (!response.ok) throw new LaunchError(`GET ${path} responded ${String(response.status)}.`);
    return body.byteLength;
  };
  const times: number[] = [];
  let bytes = 0;
  for (let count = 0; count < warmUps + repeat; count += 1) {
    const startedAt = performance.now();
    const sizes = await Promise.all(paths.map(read));
    if (count >= warmUps) times.push(performance.now() - startedAt);
    bytes = sizes.reduce((sum, size) => sum + size, 0);
  }
  return {
    requests: paths.length,
    bytes,
    median_ms: rounded(medianOf(times)),
    maximum_ms: rounded(Math.max(...times)),
  };
}
