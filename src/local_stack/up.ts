import { readSettings, type Settings } from '../config/settings.ts';
import { migrateControl } from '../migrate/migrate_control.ts';
import { migrateSource } from '../migrate/migrate_source.ts';
import { writeWorkflowBundle } from '../temporal/worker/bundle.ts';
import { createChildren, endRecordedProcesses, type Child, type Children } from './child_processes.ts';
import { asLaunchError, openDataFolder, type DataFolder } from './data_folder.ts';
import { ensureUser } from './demo/accounts.ts';
import { demoBucket, demoSeed, prepareDemo, runDemo } from './demo/demo.ts';
import { removeDemoFile, writeDemoFile, type DemoFile } from './demo/demo_file.ts';
import { ensureBucket } from './demo/demo_bucket.ts';
import { startTrickle, type Trickle } from './demo/event_generator.ts';
import { startExportd } from './exportd_processes.ts';
import { LaunchError } from './launch_error.ts';
import { LockHeld, takeLock } from './lock.ts';
import { isPortFree, keepPorts } from './ports.ts';
import { createReport, type Report } from './report.ts';
import { keepSecrets } from './secrets.ts';
import { startServers } from './servers/start_servers.ts';
import { baseUrl, stackEnvironment } from './stack_environment.ts';
import { dataFolderPath, writeStack } from './stack_file.ts';
import { listenForStop } from './shutdown_signals.ts';
import { supervise } from './supervise.ts';

export interface UpOptions {
  /** Whether a project with data and an export is made to show what exportd does. */
  readonly demo: boolean;
}

function lockFolder(folder: DataFolder): () => void {
  try {
    return takeLock(folder.inside('lock'));
  } catch (error) {
    if (error instanceof LockHeld)
      throw new LaunchError(
        `A stack already runs from ${folder.path} (process ${error.holder.pid}): stop it first, or set EXPORTD_DATA_DIR to another folder.`,
      );
    throw error;
  }
}

/** The port of the HTTP interface: the set one, or with 0 one that the folder keeps. */
async function chooseHttpPort(folder: DataFolder, settings: Settings): Promise<number> {
  const port = settings.EXPORTD_PORT;
  if (port === 0) return (await keepPorts(folder.inside('ports.json'), ['http'])).http;
  if (await isPortFree(port)) return port;
  throw new LaunchError(
    `Port ${port} is in use by another program: stop that program, or choose another port, for example EXPORTD_PORT=${port + 1} npm start.`,
  );
}

/** What a running stack is made of, as far as it has come. */
interface Stack {
  readonly folder: DataFolder;
  readonly children: Children;
  readonly settings: Settings;
  readonly report: Report;
  readonly onGiveUp: (child: Child, how: string) => void;
  started: boolean;
  trickle?: Trickle;
  demoFile?: DemoFile;
}

async function bringUp(stack: Stack, demo: boolean): Promise<void> {
  const { folder, children, settings, report, onGiveUp } = stack;
  const ended = await endRecordedProcesses(folder);
  if (ended.length > 0) report(`Ended what a killed start had left running: ${ended.join(', ')}`);
  const httpPort = await chooseHttpPort(folder, settings);
  stack.started = true;
  report(`Starting the servers, with their data in ${folder.path}`);
  const watch = (child: Child) => void supervise(children, child, report, { onGiveUp });
  const servers = await startServers(
    folder,
    children,
    { durable: true, useEnvironment: true, onStarted: watch },
    report,
  );
  const migrated = servers.postgresql.then(async (databaseUrl) => {
    const applied = await migrateControl(databaseUrl);
    if (demo || !process.env.DATABASE_URL) applied.push(...(await migrateSource(databaseUrl)));
    report(applied.length > 0 ? `Migrated: ${applied.join(', ')}` : 'The database is up to date');
    return databaseUrl;
  });
  const prepared = migrated.then((databaseUrl) =>
    demo ? prepareDemo(databaseUrl, folder, report) : ensureUser(databaseUrl).then(() => undefined),
  );
  const bucketMade = servers.objectStore.then((store) =>
    demo ? ensureBucket(store, demoBucket) : undefined,
  );
  const workflowBundle = folder.inside('workflows.js');
  const parts = Promise.all([migrated, servers.temporal, writeWorkflowBundle(workflowBundle)]);
  const exportd = parts.then(async ([databaseUrl, temporal]) => {
    const keys = keepSecrets(folder).encryptionKeys;
    const environment = stackEnvironment({ databaseUrl, temporal, httpPort }, keys, demo);
    writeStack(folder, environment);
    report('Starting server and worker');
    const processes = await startExportd(children, environment, baseUrl(settings, httpPort), {
      workflowBundle,
    });
    report(`exportd answers on ${baseUrl(settings, httpPort)}`);
    return processes;
  });
  const [databaseUrl, temporal, objectStore, accounts, processes] = await Promise.all([
    migrated,
    servers.temporal,
    servers.objectStore,
    prepared,
    exportd,
    bucketMade,
  ]);
  let workerPid = processes.worker.pid;
  void supervise(children, processes.server, report);
  void supervise(children, processes.worker, report, {
    onRestart: ({ pid }) => {
      workerPid = pid;
      if (stack.demoFile) writeDemoFile(folder, { ...stack.demoFile, worker_pid: pid });
    },
  });
  if (accounts === undefined) {
    process.stdout.write(
      `\n  HTTP interface  ${baseUrl(settings, httpPort)}\n  Temporal UI     ${temporal.ui ?? '-'}\n\nCtrl-C stops everything.\n`,
    );
    return;
  }
  stack.trickle = startTrickle(databaseUrl, accounts.projectId, demoSeed, report);
  const demoStack = {
    folder,
    baseUrl: baseUrl(settings, httpPort),
    databaseUrl,
    temporal,
    objectStore,
    workerPid: () => workerPid,
  };
  stack.demoFile = await runDemo(demoStack, accounts, report);
}

/**
 * Runs the whole stack on this machine until a person stops it. Everything that was started is ended, also when the
 * start fails halfway.
 * @throws LaunchError that says what to do. @throws SettingsError
 */
export async function up({ demo }: UpOptions): Promise<void> {
  const report = createReport();
  // A bad setting is told before anything is started; the database's address is not known yet.
  const settings = readSettings({ ...process.env, DATABASE_URL: process.env.DATABASE_URL ?? 'none yet' });
  const folder = openDataFolder(dataFolderPath());
  const unlock = lockFolder(folder);
  const children = createChildren(folder);
  process.once('exit', () => children.killAll());
  const stop = listenForStop(() => process.exit(130));
  removeDemoFile(folder);
  let giveUp: (child: Child, how: string) => void = () => undefined;
  const gaveUp = new Promise<never>((_, reject) => {
    giveUp = ({ program, logFile }, how) =>
      reject(new LaunchError(`${program.name} ${how} again and again: see ${logFile}`));
  });
  const stack: Stack = { folder, children, settings, report, onGiveUp: giveUp, started: false };
  try {
    const running = bringUp(stack, demo).then(() => stop.first);
    await Promise.race([running, stop.first, gaveUp]);
  } catch (error) {
    throw asLaunchError(error, folder.path) ?? error;
  } finally {
    if (stack.started) report('Stopping');
    removeDemoFile(folder);
    await stack.trickle?.stop();
    await children.stopAll();
    unlock();
    if (stack.started) report('Stopped');
  }
}
