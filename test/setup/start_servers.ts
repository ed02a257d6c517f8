import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, openDataFolder } from '../../src/local_stack/data_folder.ts';
import { createChildProcesses, stopRecordedProcesses } from '../../src/local_stack/child_processes.ts';
import { LockHeld, acquireLock } from '../../src/local_stack/lock.ts';
import { createReport } from '../../src/local_stack/report.ts';
import { startServers } from '../../src/local_stack/servers/start_servers.ts';
import { writeWorkflowBundle } from '../../src/temporal/worker/bundle.ts';
import { killAll, processesOf } from './left_processes.ts';
import { deleteDatabases, deleteRun, openDatabasesFolder, runsFolder } from './run_folder.ts';
import { createTemplateDatabase } from './template_database.ts';

/** Ends the processes of killed runs and deletes their data. Runs in progress hold a lock and are left alone. */
async function clearDeadRuns(): Promise<void> {
  for (const name of readdirSync(runsFolder)) {
    const folder = openDataFolder(join(runsFolder, name));
    try {
      acquireLock(folder.inside('lock'));
    } catch (error) {
      if (error instanceof LockHeld) continue;
      throw error;
    }
    killAll(processesOf(folder.path));
    await stopRecordedProcesses(folder);
    deleteRun(folder.path);
  }
}

/**
 * Starts PostgreSQL, Temporal and an S3 server for one run of Jest, in a separate folder so that concurrent runs do not
 * collide. Test processes inherit the addresses as environment variables.
 */
export default async function setUp(): Promise<void> {
  mkdirSync(runsFolder, { recursive: true });
  await clearDeadRuns();
  const path = join(runsFolder, `${Date.now().toString(36)}-${String(process.pid)}`);
  const folder = openDataFolder(path);
  acquireLock(folder.inside('lock'));
  const children = createChildProcesses(folder);
  process.once('exit', () => {
    killAll(processesOf(path));
    children.killAll();
    deleteDatabases(path);
  });
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, () => process.exit(130));
  const report = createReport();
  // Tests start about a hundred exportd processes.
  process.env.NODE_COMPILE_CACHE = cacheFolder('compiled');
  const workflowBundle = join(path, 'workflows.js');
  const options = { durable: false, useEnvironment: false, databases: openDatabasesFolder(folder) };
  const servers = await startServers(folder, children, options, report);
  const templated = servers.postgresql.then(createTemplateDatabase);
  const [databaseUrl, temporal, objectStore] = await Promise.all([
    servers.postgresql,
    servers.temporal,
    servers.objectStore,
    templated,
    writeWorkflowBundle(workflowBundle),
  ]);
  Object.assign(process.env, {
    EXPORTD_TEST_FOLDER: path,
    EXPORTD_WORKFLOW_BUNDLE: workflowBundle,
    EXPORTD_TEST_DATABASE_URL: databaseUrl,
    EXPORTD_TEST_TEMPORAL_ADDRESS: temporal.address,
    EXPORTD_TEST_S3_ENDPOINT: objectStore.endpoint,
    EXPORTD_TEST_S3_ACCESS_KEY_ID: objectStore.accessKeyId,
    EXPORTD_TEST_S3_SECRET_ACCESS_KEY: objectStore.secretAccessKey,
  });
}
