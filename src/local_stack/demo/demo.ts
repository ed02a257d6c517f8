import { setTimeout as delay } from 'node:timers/promises';
import { CreateBucketCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { createDashboard, type NewDashboard } from '../../http/dashboards/dashboards.ts';
import type { Pool } from '../../journal/database.ts';
import { type DataFolder, LaunchError } from '../data_folder.ts';
import { defineNumbers, ensureWarehouseTable } from '../queries.ts';
import type { Report } from '../report.ts';
import type { ObjectStore, TemporalServer } from '../servers/start_servers.ts';
import { type ApiClient, createApiClient } from './api_client.ts';
import {
  type DemoAccounts,
  type DemoFile,
  demoInstructions,
  ensureAccounts,
  readDemoState,
  saveDemoState,
  type ServiceFile,
  withPool,
  writeDemoFile,
} from './demo_file.ts';
import { seedDemo } from './seed.ts';

const clientOf = ({ endpoint, region, accessKeyId, secretAccessKey }: ObjectStore): S3Client =>
  new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: true,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });

/** Creates a bucket if it is missing. */
export async function ensureBucket(objectStore: ObjectStore, bucket: string): Promise<void> {
  const client = clientOf(objectStore);
  try {
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
  } catch (error) {
    if ((error as Error).name !== 'BucketAlreadyOwnedByYou') throw error;
  } finally {
    client.destroy();
  }
}

interface ManifestFile {
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
}

/** The files that a manifest references. */
async function readManifestFiles(
  objectStore: ObjectStore,
  bucket: string,
  manifestKey: string,
): Promise<readonly ManifestFile[]> {
  const client = clientOf(objectStore);
  try {
    const response = await client.send(new GetObjectCommand({ Bucket: bucket, Key: manifestKey }));
    const manifest = JSON.parse((await response.Body?.transformToString()) ?? '{}') as {
      files?: ManifestFile[];
    };
    return manifest.files ?? [];
  } finally {
    client.destroy();
  }
}

/** In a separate schema, to avoid conflicts with tables of the user. */
const relation = { schema: 'exportd_demo', name: 'stripe_charges', team_column: 'team_id' } as const;
const fullName = `${relation.schema}.${relation.name}`;

/** A charge for each purchase; some failed. */
const charges = `
  insert into ${fullName} (team_id, id, event_uuid, distinct_id, amount, currency, status, created)
  select team_id, 'ch_' || translate(uuid::text, '-', ''), uuid, distinct_id, (properties->>'revenue')::numeric,
    lower(properties->>'currency'),
    case when hashtext(uuid::text) % 20 = 0 then 'failed' else 'succeeded' end, timestamp + interval '2 seconds'
  from public.events where team_id = $1 and event = 'purchase'`;

/** Adds a warehouse table and numeric property definitions to the demo project. */
export async function ensureDemoTables(pool: Pool, projectId: number): Promise<void> {
  await pool.query(`create schema if not exists ${relation.schema};
    create table if not exists ${fullName} (team_id integer not null, id text not null, event_uuid uuid not null,
      distinct_id text not null, amount numeric(12, 2) not null, currency text not null, status text not null,
      created timestamptz not null, primary key (team_id, id))`);
  await pool.query(`delete from ${fullName} where team_id = $1`, [projectId]);
  await pool.query(charges, [projectId]);
  await ensureWarehouseTable(pool, { team_id: projectId, name: 'stripe.charges', relation });
  await defineNumbers(pool, projectId, { event: 'revenue', person: 'lifetime_value' });
}

const dashboards: readonly NewDashboard[] = [
  {
    name: 'Product overview',
    description: 'Page views, sign-ups and purchases of the demo project',
    pinned: true,
    tags: ['demo'],
  },
  {
    name: 'Weekly report',
    description: 'Only its creator can edit this dashboard',
    tags: ['demo', 'weekly'],
    restriction_level: 37,
  },
];

/** Creates the demo dashboards unless the project has any. */
export async function ensureDemoDashboards(pool: Pool, userId: number, projectId: number): Promise<void> {
  const { rowCount } = await pool.query('select from exportd.dashboards where team_id = $1 limit 1', [
    projectId,
  ]);
  if (rowCount) return;
  for (const dashboard of dashboards)
    await createDashboard(pool, { project_id: projectId, user_id: userId }, dashboard);
}

/** The fields of a run that the demo reads. */
interface DemoRun {
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
async function ensureExport(
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
async function ensureBackfill(
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
async function waitForCompletedRun(
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

/** The name of the demo's project. */
export const demoProject = 'Demo';
/** The bucket that the demo exports to. */
export const demoBucket = 'exportd-demo';
/** An arbitrary number. The demo data depends only on it and the start time. */
export const demoSeed = 20_261;

/**
 * Creates the accounts of the demo and, at the first start, its data.
 * @param onTablesAdded lets queries read the tables that the first start registers.
 */
export async function prepareDemo(
  databaseUrl: string,
  folder: DataFolder,
  report: Report,
  onTablesAdded: () => Promise<void>,
): Promise<DemoAccounts> {
  const accounts = await ensureAccounts(databaseUrl, folder, demoProject, ensureDemoDashboards);
  const saved = readDemoState(folder);
  if (saved.anchor === undefined || saved.project_id !== accounts.projectId) {
    report('Writing demo data: 48 hours of events, persons, groups and session replays');
    const anchor = new Date();
    await seedDemo(databaseUrl, { teamId: accounts.projectId, seed: demoSeed, anchor }, report);
    saveDemoState(folder, { project_id: accounts.projectId, anchor: anchor.toISOString() });
  }
  if (saved.tables_project_id !== accounts.projectId) {
    await withPool(databaseUrl, (pool) => ensureDemoTables(pool, accounts.projectId));
    await onTablesAdded();
    saveDemoState(folder, { tables_project_id: accounts.projectId });
  }
  return accounts;
}

/** Properties of a running stack that the demo uses. */
interface DemoStack {
  readonly folder: DataFolder;
  readonly baseUrl: string;
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly objectStore: ObjectStore;
  readonly monitoringUrl: string;
  readonly workerUrl: string;
  readonly workerPid: () => number;
}

/** The addresses and keys of a running stack. */
export const serviceFileOf = (stack: DemoStack, accounts: DemoAccounts): ServiceFile => ({
  base_url: stack.baseUrl,
  project_id: accounts.projectId,
  api_key: accounts.apiKey,
  s3_endpoint: stack.objectStore.endpoint,
  s3_access_key_id: stack.objectStore.accessKeyId,
  s3_secret_access_key: stack.objectStore.secretAccessKey,
  database_url: stack.databaseUrl,
  temporal_address: stack.temporal.address,
  temporal_namespace: stack.temporal.namespace,
  temporal_ui: stack.temporal.ui ?? null,
  monitoring_url: stack.monitoringUrl,
  worker_url: stack.workerUrl,
  worker_pid: stack.workerPid(),
});

/** Creates an export, starts a backfill, and waits for a completed run. @returns the id of the export */
export async function exportDemo(
  client: ApiClient,
  folder: DataFolder,
  objectStore: ObjectStore,
  report: Report,
): Promise<string> {
  const id = await ensureExport(client, folder, objectStore, demoBucket, report);
  await ensureBackfill(client, folder, id, report);
  const completed = await waitForCompletedRun(client, id, report);
  if (completed?.manifest_key) {
    report(`Manifest: s3://${demoBucket}/${completed.manifest_key}`);
    for (const { key, rows, bytes } of await readManifestFiles(
      objectStore,
      demoBucket,
      completed.manifest_key,
    ))
      report(
        `  file s3://${demoBucket}/${key}: ${rows.toLocaleString('en')} rows, ${bytes.toLocaleString('en')} bytes`,
      );
  }
  return id;
}

/** Exports the rows of the demo, and prints what to try next. */
export async function runDemo(stack: DemoStack, accounts: DemoAccounts, report: Report): Promise<DemoFile> {
  const { folder, objectStore } = stack;
  const client = createApiClient(stack.baseUrl, accounts.projectId, accounts.apiKey);
  const id = await exportDemo(client, folder, objectStore, report);
  const demo: DemoFile = { ...serviceFileOf(stack, accounts), batch_export_id: id, bucket: demoBucket };
  writeDemoFile(folder, demo);
  report('Everything is ready');
  process.stdout.write(demoInstructions(folder, demo));
  return demo;
}
