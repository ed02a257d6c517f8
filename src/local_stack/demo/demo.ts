import type { DataFolder } from '../data_folder.ts';
import type { Report } from '../report.ts';
import type { ObjectStore, TemporalServer } from '../servers/start_servers.ts';
import type { DemoAccounts } from './accounts.ts';
import { ensureDemoAccounts, withPool } from './accounts.ts';
import { createApiClient } from './api_client.ts';
import { keepDemoState, readDemoState, writeDemoFile, type DemoFile } from './demo_file.ts';
import { demoInstructions } from './instructions.ts';
import { filesOf } from './objects.ts';
import { seedDemo } from './seed.ts';
import { ensureDemoTables } from './tables.ts';
import { ensureBackfill, ensureExport, untilFirstCompleted } from './tour.ts';

/** The bucket that the demo's exports write to. */
export const demoBucket = 'exportd-demo';
/** Any number; the demo data of all who start at the same time are the same. */
export const demoSeed = 20_261;

/** Makes the demo's accounts and, at the first start, its data. */
export async function prepareDemo(
  databaseUrl: string,
  folder: DataFolder,
  report: Report,
): Promise<DemoAccounts> {
  const accounts = await ensureDemoAccounts(databaseUrl, folder);
  const kept = readDemoState(folder);
  if (kept.anchor === undefined || kept.project_id !== accounts.projectId) {
    report('Demo data: writing events, persons, groups and replays of 48 hours');
    const anchor = new Date();
    await seedDemo(databaseUrl, { teamId: accounts.projectId, seed: demoSeed, anchor }, report);
    keepDemoState(folder, { project_id: accounts.projectId, anchor: anchor.toISOString() });
  }
  if (kept.tables_of !== accounts.projectId) {
    await withPool(databaseUrl, (pool) => ensureDemoTables(pool, accounts.projectId));
    keepDemoState(folder, { tables_of: accounts.projectId });
  }
  return accounts;
}

/** A running stack, as the demo needs to know it. */
export interface DemoStack {
  readonly folder: DataFolder;
  readonly baseUrl: string;
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly objectStore: ObjectStore;
  readonly workerPid: () => number;
}

/** Shows what exportd does: an export, a backfill, a Completed run; then says where everything is. */
export async function runDemo(stack: DemoStack, accounts: DemoAccounts, report: Report): Promise<DemoFile> {
  const { folder, objectStore, temporal } = stack;
  const client = createApiClient(stack.baseUrl, accounts.projectId, accounts.apiKey);
  const id = await ensureExport(client, folder, objectStore, demoBucket, report);
  await ensureBackfill(client, folder, id, report);
  const completed = await untilFirstCompleted(client, id, report);
  if (completed?.manifest_key) {
    report(`Its manifest: s3://${demoBucket}/${completed.manifest_key}`);
    for (const { key, rows, bytes } of await filesOf(objectStore, demoBucket, completed.manifest_key))
      report(
        `  names s3://${demoBucket}/${key}: ${rows.toLocaleString('en')} rows, ${bytes.toLocaleString('en')} bytes`,
      );
  }
  const demo: DemoFile = {
    base_url: stack.baseUrl,
    project_id: accounts.projectId,
    api_key: accounts.apiKey,
    batch_export_id: id,
    bucket: demoBucket,
    s3_endpoint: objectStore.endpoint,
    s3_access_key_id: objectStore.accessKeyId,
    s3_secret_access_key: objectStore.secretAccessKey,
    database_url: stack.databaseUrl,
    temporal_address: temporal.address,
    temporal_namespace: temporal.namespace,
    temporal_ui: temporal.ui ?? null,
    worker_pid: stack.workerPid(),
  };
  writeDemoFile(folder, demo);
  report('Everything answers');
  process.stdout.write(demoInstructions(folder, demo));
  return demo;
}
