import { startCommand } from '../config/installation.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { migrateControl, migrateSource } from '../migrate/migrate.ts';
import { writeWorkflowBundle } from '../temporal/worker/bundle.ts';
import {
  type Child,
  type ChildProcesses,
  createChildProcesses,
  listenForShutdown,
  stopRecordedProcesses,
  supervise,
} from './child_processes.ts';
import {
  asLaunchError,
  type DataFolder,
  dataFolderPath,
  LaunchError,
  loadOrCreateSecrets,
  openDataFolder,
  writeStack,
} from './data_folder.ts';
import {
  ensureAccounts,
  ownSourceInstructions,
  removeDemoFile,
  type ServiceFile,
  writeDemoFile,
} from './demo/demo_file.ts';
import { demoBucket, demoSeed, ensureBucket, prepareDemo, runDemo, serviceFileOf } from './demo/demo.ts';
import { type EventGenerator, startEventGenerator } from './demo/seed.ts';
import { startExportd } from './exportd_processes.ts';
import { LockHeld, acquireLock } from './lock.ts';
import { isPortFree, assignPorts } from './ports.ts';
import { prepareQueryRole } from './queries.ts';
import { baseUrl, requireSameSource, stackEnvironment } from './stack_environment.ts';
import { createReport, type Report } from './report.ts';
import { startServers } from './servers/start_servers.ts';

/** The bucket for exports of the user's own data, on the S3 server of the stack. */
const trialBucket = 'exportd-trial';

interface UpOptions {
  /** Whether to create a project with data and an export. */
  readonly demo: boolean;
}

function lockFolder(folder: DataFolder): () => void {
  try {
    return acquireLock(folder.inside('lock'));
  } catch (error) {
    if (error instanceof LockHeld)
      throw new LaunchError(
        `A stack is already running in ${folder.path} (process ${error.holder.pid}): stop it first, or set EXPORTD_DATA_DIR to another folder.`,
      );
    throw error;
  }
}

/** The port of the HTTP API: EXPORTD_PORT, or if that is 0 the port saved in the folder. */
async function chooseHttpPort(folder: DataFolder, settings: Settings): Promise<number> {
  const port = settings.EXPORTD_PORT;
  if (port === 0) return (await assignPorts(folder.inside('ports.json'), ['http'])).http;
  if (await isPortFree(port)) return port;
  throw new LaunchError(
    `Port ${port} is in use by another program: stop it, or choose another port, for example EXPORTD_PORT=${port + 1} ${startCommand}.`,
  );
}

/** The port of the health and metrics of a process: that of its setting, or else the one saved in the folder. */
async function chooseMonitoringPort(
  folder: DataFolder,
  name: 'monitoring' | 'worker',
  port = 0,
): Promise<number> {
  return port > 0 ? port : (await assignPorts(folder.inside('ports.json'), [name]))[name];
}

/** A stack that is starting or running. */
interface Stack {
  readonly folder: DataFolder;
  readonly children: ChildProcesses;
  readonly settings: Settings;
  readonly report: Report;
  readonly onCrashLoop: (child: Child, how: string) => void;
  started: boolean;
  eventGenerator?: EventGenerator;
  demoFile?: ServiceFile;
}

async function startStack(stack: Stack, demo: boolean): Promise<void> {
  const { folder, children, settings, report, onCrashLoop } = stack;
  const stopped = await stopRecordedProcesses(folder);
  if (stopped.length > 0)
    report(`Stopped processes of an earlier start that was killed: ${stopped.join(', ')}`);
  const httpPort = await chooseHttpPort(folder, settings);
  const workerPort = await chooseMonitoringPort(folder, 'worker', settings.EXPORTD_WORKER_HTTP_PORT);
  const monitoringPort = await chooseMonitoringPort(folder, 'monitoring', settings.EXPORTD_MONITORING_PORT);
  const monitoringUrl = baseUrl({ EXPORTD_HOST: settings.EXPORTD_MONITORING_HOST }, monitoringPort);
  const workerUrl = baseUrl({ EXPORTD_HOST: settings.EXPORTD_WORKER_HTTP_HOST }, workerPort);
  stack.started = true;
  report(`Starting the servers, with data in ${folder.path}`);
  const watch = (child: Child) => void supervise(children, child, report, { onCrashLoop });
  const servers = await startServers(
    folder,
    children,
    { durable: true, useEnvironment: true, onStarted: watch },
    report,
  );
  const migrated = servers.postgresql.then(async (databaseUrl) => {
    const applied = (await migrateControl(databaseUrl)).applied.map((name) => `control/${name}`);
    if (demo || !(process.env.DATABASE_URL || process.env.SOURCE_DATABASE_URL))
      applied.push(...(await migrateSource(databaseUrl)).map((name) => `source/${name}`));
    report(applied.length > 0 ? `Applied migrations: ${applied.join(', ')}` : 'The database is up to date');
    return databaseUrl;
  });
  const keys = loadOrCreateSecrets(folder).encryptionKeys;
  const queryRole = migrated.then((databaseUrl) => prepareQueryRole(databaseUrl, keys));
  const prepared = migrated.then(async (databaseUrl) => {
    if (!demo) return ensureAccounts(databaseUrl, folder, 'My project');
    // Before the demo writes: the role needs locks that a long transaction would keep it from.
    const role = await queryRole;
    return prepareDemo(databaseUrl, folder, report, () => role.update());
  });
  const bucketMade = servers.objectStore.then((store) =>
    demo || !process.env.S3_ENDPOINT ? ensureBucket(store, demo ? demoBucket : trialBucket) : undefined,
  );
  const workflowBundle = folder.inside('workflows.js');
  const dependencies = Promise.all([
    migrated,
    servers.temporal,
    queryRole,
    writeWorkflowBundle(workflowBundle),
  ]);
  const exportd = dependencies.then(async ([databaseUrl, temporal, { environment: queries }]) => {
    const environment = {
      ...stackEnvironment({ databaseUrl, temporal, httpPort }, keys, demo),
      ...queries,
    };
    writeStack(folder, environment);
    report('Starting the exportd server and worker');
    const processes = await startExportd(children, environment, baseUrl(settings, httpPort), {
      workflowBundle,
      workerHttpPort: workerPort,
      monitoringPort,
    });
    report(`exportd is ready on ${baseUrl(settings, httpPort)}`);
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
  const runningStack = {
    folder,
    baseUrl: baseUrl(settings, httpPort),
    databaseUrl,
    temporal,
    objectStore,
    monitoringUrl,
    workerUrl,
    workerPid: () => workerPid,
  };
  if (demo) {
    stack.eventGenerator = startEventGenerator(databaseUrl, accounts.projectId, demoSeed, report);
    stack.demoFile = await runDemo(runningStack, accounts, report);
    return;
  }
  stack.demoFile = serviceFileOf(runningStack, accounts);
  writeDemoFile(folder, stack.demoFile);
  process.stdout.write(ownSourceInstructions(folder, stack.demoFile, trialBucket));
}

/**
 * Runs the whole stack on this machine until the user stops it. Stops all processes, also when the start fails.
 * @throws LaunchError, SettingsError
 */
export async function up(options: UpOptions): Promise<void> {
  const report = createReport();
  // Databases, objects and logs, of its servers too, are for their owner alone.
  process.umask(0o077);
  // Reports invalid settings before anything starts. The URL of the database is not known yet.
  const settings = readSettings({ ...process.env, DATABASE_URL: process.env.DATABASE_URL ?? 'unknown' });
  const folder = openDataFolder(dataFolderPath());
  const hasOwnSource = Boolean(process.env.SOURCE_DATABASE_URL);
  // The demo writes its rows into the stack's own PostgreSQL, which exportd then does not read.
  const demo = options.demo && !hasOwnSource;
  const unlock = lockFolder(folder);
  const children = createChildProcesses(folder);
  process.once('exit', () => children.killAll());
  const shutdown = listenForShutdown(() => process.exit(130));
  removeDemoFile(folder);
  let rejectCrashLoop: (child: Child, how: string) => void = () => undefined;
  const crashLoop = new Promise<never>((_, reject) => {
    rejectCrashLoop = ({ program, logFile }, how) =>
      reject(new LaunchError(`${program.name} ${how} repeatedly: see ${logFile}`));
  });
  const stack: Stack = { folder, children, settings, report, onCrashLoop: rejectCrashLoop, started: false };
  try {
    requireSameSource(folder, hasOwnSource);
    const running = startStack(stack, demo).then(() => shutdown.first);
    await Promise.race([running, shutdown.first, crashLoop]);
  } catch (error) {
    throw asLaunchError(error, folder.path) ?? error;
  } finally {
    if (stack.started) report('Stopping');
    removeDemoFile(folder);
    await stack.eventGenerator?.stop();
    await children.stopAll();
    unlock();
    if (stack.started) report('Stopped');
  }
}
