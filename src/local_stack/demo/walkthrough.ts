import { setTimeout as delay } from 'node:timers/promises';
import type { DataFolder } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import type { Report } from '../report.ts';
import type { ObjectStore } from '../servers/start_servers.ts';
import type { ApiClient } from './api_client.ts';
import { saveDemoState, readDemoState } from './demo_file.ts';

/** The fields of a run that the demo reads. */
export interface DemoRun {
  readonly id: string;
  readonly status: string;
  readonly records_completed: number;
  readonly latest_error: string | null;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly manifest_key: string | null;
}

const hourMs = 3_600_000;
const backfilledHours = 3;
const terminalStatuses = new Set(['Completed', 'Failed', 'Cancelled', 'Terminated']);

/** Creates the export of the demo unless it exists. @returns Its id. */
export async function ensureExport(
  client: ApiClient,
  folder: DataFolder,
  objectStore: ObjectStore,
  bucket: string,
  report: Report,
): Promise<string> {
  const saved = readDemoState(folder).batch_export_id;
  if (saved !== undefined && (await client.request('GET', `${saved}/`)) !== undefined) return saved;
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
  if (created === undefined) throw new LaunchError('exportd does not find the demo project.');
  saveDemoState(folder, { batch_export_id: created.id, backfilled: false });
  report('Created an hourly export of events to JSONLines files with gzip');
  return created.id;
}

/** Backfills the last whole hours, once per export. */
export async function ensureBackfill(
  client: ApiClient,
  folder: DataFolder,
  id: string,
  report: Report,
): Promise<void> {
  if (readDemoState(folder).backfilled === true) return;
  const end = Math.floor(Date.now() / hourMs) * hourMs;
  await client.request('POST', `${id}/backfill/`, {
    start_at: new Date(end - backfilledHours * hourMs).toISOString(),
    end_at: new Date(end).toISOString(),
  });
  saveDemoState(folder, { backfilled: true });
  report(`Started a backfill of the last ${backfilledHours} whole hours`);
}

const clock = (time: string): string => time.slice(11, 16);

const describeRun = (run: DemoRun): string =>
  `Run ${clock(run.data_interval_start)}–${clock(run.data_interval_end)} ${run.status}` +
  (run.records_completed > 0 ? `, ${run.records_completed.toLocaleString('en')} rows` : '') +
  (run.latest_error === null ? '' : `: ${run.latest_error}`);

/**
 * Reports the status of each run until one is Completed.
 * @returns That run, or undefined when all runs failed or none completed in time.
 */
export async function waitForCompletedRun(
  client: ApiClient,
  id: string,
  report: Report,
  timeoutMs = 120_000,
): Promise<DemoRun | undefined> {
  const reportedStatuses = new Map<string, string>();
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    const page = await client.request<{ results: DemoRun[] }>('GET', `${id}/runs/?limit=10`);
    const runs = page?.results ?? [];
    for (const run of runs.toReversed()) {
      if (reportedStatuses.get(run.id) !== run.status) report(describeRun(run));
      reportedStatuses.set(run.id, run.status);
    }
    const completed = runs.find(({ status }) => status === 'Completed');
    if (completed) return completed;
    if (runs.length >= backfilledHours && runs.every(({ status }) => terminalStatuses.has(status))) break;
    await delay(150);
  }
  report('No run has completed yet: see the logs of the export and the log files');
  return undefined;
}
