import { setTimeout as delay } from 'node:timers/promises';
import type { DataFolder } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import type { Report } from '../report.ts';
import type { ObjectStore } from '../servers/start_servers.ts';
import type { ApiClient } from './api_client.ts';
import { keepDemoState, readDemoState } from './demo_file.ts';

/** What the tour reads of a run. */
export interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly records_completed: number;
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly manifest_key: string | null;
}

const hourMs = 3_600_000;
const hoursBackfilled = 3;
const over = new Set(['Completed', 'Failed', 'Cancelled', 'Terminated']);

/** The demo's export: the one of an earlier start, or a new one. @returns its id. */
export async function ensureExport(
  client: ApiClient,
  folder: DataFolder,
  objectStore: ObjectStore,
  bucket: string,
  report: Report,
): Promise<string> {
  const kept = readDemoState(folder).batch_export_id;
  if (kept !== undefined && (await client.request('GET', `${kept}/`)) !== undefined) return kept;
  const created = await client.request<{ id: string }>('POST', '', {
    name: 'Demo: events by the hour',
    model: 'events',
    interval: 'hour',
    destination: {
      type: 'S3',
      config: {
        bucket_name: bucket,
        region: objectStore.region,
        prefix: 'events',
        endpoint_url: objectStore.endpoint,
        aws_access_key_id: objectStore.accessKeyId,
        aws_secret_access_key: objectStore.secretAccessKey,
        file_format: 'JSONLines',
        compression: 'gzip',
      },
    },
  });
  if (created === undefined) throw new LaunchError('exportd does not know the demo project.');
  keepDemoState(folder, { batch_export_id: created.id, backfilled: false });
  report('Created an hourly export of events, JSON lines with gzip');
  return created.id;
}

/** Backfills the last whole hours, once for each export. */
export async function ensureBackfill(
  client: ApiClient,
  folder: DataFolder,
  id: string,
  report: Report,
): Promise<void> {
  if (readDemoState(folder).backfilled === true) return;
  const end = Math.floor(Date.now() / hourMs) * hourMs;
  await client.request('POST', `${id}/backfill/`, {
    start_at: new Date(end - hoursBackfilled * hourMs).toISOString(),
    end_at: new Date(end).toISOString(),
  });
  keepDemoState(folder, { backfilled: true });
  report(`Backfilling its last ${hoursBackfilled} whole hours`);
}

const clock = (time: string): string => time.slice(11, 16);

const describeRun = (run: ShownRun): string =>
  `Run ${clock(run.data_interval_start)}–${clock(run.data_interval_end)} ${run.status}` +
  (run.records_completed > 0 ? `, ${run.records_completed.toLocaleString('en')} rows` : '') +
  (run.latest_error === null ? '' : `: ${run.latest_error}`);

/**
 * Shows how runs come on until one is Completed.
 * @returns that run; undefined when every run has ended otherwise, or none is Completed in time.
 */
export async function untilFirstCompleted(
  client: ApiClient,
  id: string,
  report: Report,
  patienceMs = 120_000,
): Promise<ShownRun | undefined> {
  const shown = new Map<string, string>();
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const page = await client.request<{ results: ShownRun[] }>('GET', `${id}/runs/?limit=10`);
    const runs = page?.results ?? [];
    for (const run of runs.toReversed()) {
      if (shown.get(run.id) !== run.status) report(describeRun(run));
      shown.set(run.id, run.status);
    }
    const completed = runs.find(({ status }) => status === 'Completed');
    if (completed) return completed;
    if (runs.length >= hoursBackfilled && runs.every(({ status }) => over.has(status))) break;
    await delay(150);
  }
  report('No run is Completed yet: see the logs of the export, and the log files');
  return undefined;
}
