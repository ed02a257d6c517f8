import type { DataFolder } from '../data_folder.ts';
import type { Report } from '../report.ts';
import type { ObjectStore, TemporalServer } from '../servers/start_servers.ts';
import type { DemoAccounts } from './accounts.ts';
import { ensureAccounts, withPool } from './accounts.ts';
import { createApiClient } from './api_client.ts';
import { saveDemoState, readDemoState, writeDemoFile, type DemoFile, type ServiceFile } from './demo_file.ts';
import { ensureDemoDashboards } from './dashboards.ts';
import { demoInstructions } from './instructions.ts';
import { readManifestFiles } from './demo_bucket.ts';
import { seedDemo } from './seed.ts';
import { ensureDemoTables } from './tables.ts';
import { ensureBackfill, ensureExport, waitForCompletedRun } from './walkthrough.ts';

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
  const accounts = await ensureAccounts(databaseUrl, folder, 'Demo', ensureDemoDashboards);
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
export interface DemoStack {
  readonly folder: DataFolder;
  readonly baseUrl: string;
  readonly databaseUrl: string;
  readonly temporal: TemporalServer;
  readonly objectStore: ObjectStore;
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
  worker_url: stack.workerUrl,
  worker_pid: stack.workerPid(),
});

/** Creates an export, starts a backfill, waits for a completed run and prints instructions. */
export async function runDemo(stack: DemoStack, accounts: DemoAccounts, report: Report): Promise<DemoFile> {
  const { folder, objectStore } = stack;
  const client = createApiClient(stack.baseUrl, accounts.projectId, accounts.apiKey);
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
  const demo: DemoFile = { ...serviceFileOf(stack, accounts), batch_export_id: id, bucket: demoBucket };
  writeDemoFile(folder, demo);
  report('Everything is ready');
  process.stdout.write(demoInstructions(folder, demo));
  return demo;
}
