import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { createScheduleActivities } from '../../activities/schedule.ts';
import { createJobActivities } from '../../activities/jobs.ts';
import { createRunActivities, type ExportActivities } from '../../activities/run.ts';
import { createQueryActivities, createQueryOutcomeActivities } from '../../activities/query.ts';
import { createMaintenancePlanner } from '../../activities/maintenance.ts';
import { createKeyRing, type KeyRing } from '../../src/config/key_ring.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { wakeSignal } from '../../src/contract/workflow_inputs.ts';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { createPolicies, type Policies } from '../../src/decisions/policies.ts';
import { createRunRecorder, type RunRecorder } from '../../src/decisions/run_recorder.ts';
import { createWaitingRuns } from '../../src/decisions/waiting_runs.ts';
import { createLocationOpener } from '../../src/destination/open_destination.ts';
import type { RunStatus } from '../../src/domain/run_state.ts';
import { type Command, type CommandName, readCommand } from '../../src/journal/commands.ts';
import type { JobHandler } from '../../src/jobs/jobs.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { builtInQueryKinds } from '../../src/queries/built_in_kinds.ts';
import { createInlineExecutor } from '../queries/inline_executor.ts';
import type { RunTurns } from '../../src/export/run_turns.ts';
import type { QueryKinds } from '../../src/queries/parse_query.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createWorkflowClients } from '../../src/temporal/clients/workflow_clients.ts';
import { createExecutionLists } from '../../src/temporal/clients/executions.ts';
import { clientOfWorkers, connectWorkers, createClient } from '../../src/temporal/connections.ts';
import { createSignalRecovery } from '../../src/temporal/reconcilers/signal_recovery.ts';
import { createExportSlots, createJobSlots } from '../../src/temporal/worker/activity_slots.ts';
import { createWorkers } from '../../src/temporal/worker/workers.ts';
import { createReconcileLoops } from '../../src/temporal/reconcilers/reconcile_loops.ts';
import { reconcilers } from '../../src/temporal/reconcilers/registry.ts';
import { configRules, createCapabilities, createJobHandlers } from '../../src/temporal/capabilities.ts';
import type { ReconcilerDependencies } from '../../src/temporal/reconcilers/check_executions.ts';
import { createQueryActivityDependencies } from '../../src/temporal/worker/query_worker.ts';
import { installRuntime } from '../../src/temporal/worker/worker_process.ts';
import { ensureSearchAttributes } from '../../src/temporal/search_attributes.ts';
import { definition } from '../decisions/commander.ts';
import { type ReadRun, readRuns, readRun } from '../decisions/read_runs.ts';
import { storeTestCommand } from '../journal/store_test_command.ts';
import { hourAgo } from '../setup/hours.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { generousTimeouts } from '../setup/timeouts.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  type Behaviour,
  createBehaviour,
  fakeExportActivities,
  fakeMaintenanceActivities,
  fakeSource,
} from './fakes.ts';
import { createOutages } from '../../src/failures/outages.ts';
import { createBackfillActivities } from '../../activities/backfill.ts';
import { createRunStarter } from '../../src/temporal/clients/run_starter.ts';
import type { ScheduleClient } from '../../src/temporal/clients/schedule_client.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

export type { Behaviour };

/** Much longer than anything takes, unless the machine is very busy. */
const reconcileAfterMs = 60_000;

/** The control plane with its own database and task queues, and with fakes for source and destination. */
export interface ControlPlaneHarness {
  readonly pool: Pool;
  readonly journal: Journal;
  readonly policies: Policies;
  readonly settings: Settings;
  /** Sets the retry budget of the activities of runs that start from now on; undefined for the default. */
  setActivityTimeout(milliseconds: number | undefined): void;
  /** Sets the timeout of runs that start from now on; undefined for the default. */
  setRunTimeout(milliseconds: number | undefined): void;
  /** Seals the secrets of webhooks. */
  readonly keyRing: KeyRing;
  readonly client: Client;
  readonly schedules: ScheduleClient;
  readonly behaviour: Behaviour;
  /** Makes the fakes succeed again. */
  resetBehaviour(): void;
  /** Starts the worker with exportd's workflows, or with those of a test. */
  startWorker(bundle?: WorkflowBundleOption): Promise<void>;
  stopWorker(): Promise<void>;
  /** Whether the reconcilers take the worker to be idle; it is by default. */
  setIdle(isIdle: boolean): void;
  /** One report of the worker, as its process sends it every few seconds. */
  reportWorker(): Promise<void>;
  /** One pass of every reconciler. */
  reconcile(): Promise<void>;
  readonly reconcilerDependencies: ReconcilerDependencies;
  /** Like `waitFor`, but runs the reconciler after a minute, as a worker does, for what a busy Temporal did not accept. */
  waitForReconciled: typeof waitFor;
  /** Stores a command of a project, 1 by default, and signals it, as the API does. */
  send(
    batchExportId: string,
    name: CommandName,
    body?: Record<string, unknown>,
    projectId?: number,
  ): Promise<string>;
  /** Sends a command and waits for its outcome. */
  command(
    batchExportId: string,
    name: CommandName,
    body?: Record<string, unknown>,
    projectId?: number,
  ): Promise<Command>;
  /** Creates an export of a project, 1 by default, and waits until it exists. */
  createExport(overrides?: object, projectId?: number): Promise<string>;
  /** Creates an export with one run, of the last whole hour. */
  createExportWithRun(): Promise<string>;
  runsOf(batchExportId: string): Promise<ReadRun[]>;
  /** The project of a run; undefined if there is no such run. */
  projectOf(runId: string): Promise<number | undefined>;
  waitForRun(batchExportId: string, status: RunStatus): Promise<ReadRun>;
  close(): Promise<void>;
}

/** A real source and real export activities. */
interface DataPlane {
  readonly source: Source;
  readonly exportActivities: ExportActivities;
}

/** Starts the control plane without its worker; with fakes for source and destination unless `makeDataPlane` creates real ones. */
export async function createControlPlaneHarness(
  overrides: Record<string, string> = {},
  makeDataPlane?: (database: TestDatabase, settings: Settings, recorder: RunRecorder) => DataPlane,
  queryKinds?: QueryKinds,
  jobHandlers?: readonly JobHandler[],
): Promise<ControlPlaneHarness> {
  const database = await createTestDatabase();
  const settings = readSettings({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
    // Errors that end a worker appear only in its log; without it a test would just time out.
    EXPORTD_LOG_LEVEL: 'error',
    EXPORTD_MANUAL_SIGNALS: 'true',
    EXPORTD_JITTER_LONG: '0s',
    EXPORTD_JITTER_SHORT_FRACTION: '0',
    EXPORTD_SETTLE_DELAY: '0s',
    EXPORTD_ACTIVITY_RETRY_INITIAL: '50ms',
    EXPORTD_ACTIVITY_RETRY_MAX: '200ms',
    ...generousTimeouts,
    ...overrides,
  });
  const logger = createLogger('test', settings);
  installRuntime(logger);
  const temporal = await createClient(settings);
  const { client } = temporal;
  await ensureSearchAttributes(temporal, settings, AbortSignal.timeout(60_000));
  const connection = await connectWorkers(settings);
  const workflowBundle = sharedBundle();
  const { pool } = database;
  const keyRing = createKeyRing(`test:${randomBytes(32).toString('base64')}`);
  const capabilities = createCapabilities({ client, pool, keyRing, logger, settings });
  const journal = openJournal(pool, { subscribers: capabilities.subscribers });
  const recorder = createRunRecorder(journal);
  const behaviour = createBehaviour();
  let exportSlots = createExportSlots(settings);
  const data = makeDataPlane?.(database, settings, recorder) ?? {
    source: fakeSource(behaviour),
    exportActivities: fakeExportActivities(recorder, behaviour, logger, {
      yieldSlot: () => exportSlots.yieldSlot(),
    }),
  };
  const outages = createOutages(pool, settings, logger);
  // A run's input is created from these settings when it starts.
  const runSettings = { ...settings };
  const control = {
    journal,
    client,
    policies: createPolicies(settings, configRules),
    recorder,
    source: data.source,
    readSelection: () => Promise.resolve(allRows),
    completeSmallRun: (...run: Parameters<typeof behaviour.completeSmallRun>) =>
      behaviour.completeSmallRun(...run),
    turns: { wait: (...of: Parameters<RunTurns['wait']>) => behaviour.turns.wait(...of) },
    ...createWorkflowClients(client, pool, settings),
    runs: createRunStarter(await clientOfWorkers(connection, settings), runSettings, {
      takesFirstTask: true,
    }),
    logger,
    settings,
  };
  const handlers =
    jobHandlers ??
    createJobHandlers({
      pool,
      keyRing,
      settings,
      logger,
      journal,
      source: data.source,
      readSelection: control.readSelection,
      openLocation: createLocationOpener(pool, keyRing, settings),
      policies: control.policies,
      backfills: control.backfills,
    });
  const executionLists = createExecutionLists(client, settings);
  let isIdle = true;
  const reconcilerDependencies: ReconcilerDependencies = {
    ...control,
    executionLists,
    openLocation: createLocationOpener(pool, keyRing, settings, { circuits: outages.circuits }),
    isIdle: () => isIdle,
    signalRecovery: createSignalRecovery(client, executionLists, journal, control.policies),
    ensureSearchAttributes: (signal) => ensureSearchAttributes(temporal, settings, signal),
  };
  const reconcileLoops = createReconcileLoops(reconcilerDependencies, {
    ...reconcilers,
    ...capabilities.reconcilers,
  });
  let stop: (() => Promise<void>) | undefined;

  const send: ControlPlaneHarness['send'] = async (batchExportId, name, body, projectId) => {
    const id = await storeTestCommand(pool, batchExportId, name, body, projectId);
    await control.schedules.signal({ batch_export_id: batchExportId, name, id });
    return id;
  };
  const command: ControlPlaneHarness['command'] = async (batchExportId, name, body, projectId) => {
    const id = await send(batchExportId, name, body, projectId);
    let decided: Command | undefined;
    await waitFor(async () => {
      decided = await readCommand(pool, id);
      return decided?.status !== 'pending';
    }, `the outcome of ${name}`);
    if (!decided) throw new Error(`The command ${id} is gone.`);
    return decided;
  };
  const runsOf = (batch_export_id: string) => readRuns(pool, { batch_export_id });
  const projectOf = async (runId: string) => (await readRun(pool, runId)).team_id;
  const createExport = async (fields: object = {}, projectId?: number) => {
    const id = randomUUID();
    const body = {
      // Ends in the past, so that no run is created when an hour ends during a test.
      definition: { ...definition, interval: 'hour', end_at: hourAgo(0).toISOString(), ...fields },
      paused: false,
    };
    const { status } = await command(id, 'create', body, projectId);
    if (status !== 'applied') throw new Error(`The export was not created: ${status}`);
    return id;
  };
  const stopWorker = async () => {
    await stop?.();
    stop = undefined;
  };
  return {
    pool,
    journal,
    policies: control.policies,
    settings,
    setActivityTimeout: (milliseconds) => {
      runSettings.EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT = milliseconds;
    },
    setRunTimeout: (milliseconds) => {
      runSettings.EXPORTD_RUN_TIMEOUT = milliseconds;
    },
    keyRing,
    client,
    schedules: control.schedules,
    behaviour,
    resetBehaviour: () => {
      Object.assign(behaviour, createBehaviour());
    },
    startWorker: async (bundle = workflowBundle) => {
      // For this worker alone: the SDK does not always release the slots of polls that a shutdown ends.
      const queries = createQueryActivityDependencies({
        pool,
        executor: createInlineExecutor(queryKinds ?? builtInQueryKinds),
        logger,
        settings,
        metrics: createMetrics('worker'),
      });
      const jobSlots = createJobSlots();
      exportSlots = createExportSlots(settings);
      const workers = await createWorkers({
        connection,
        workflowBundle: bundle,
        activities: {
          control: {
            ...createScheduleActivities(control),
            ...createBackfillActivities(control),
            ...createRunActivities({ ...control, outages }),
            ...createMaintenancePlanner(control),
            ...createQueryOutcomeActivities(queries),
          },
          export: data.exportActivities,
          maintenance: {
            ...fakeMaintenanceActivities(behaviour, logger),
            ...capabilities.activities,
          },
          query: createQueryActivities(queries),
          jobs: createJobActivities({ pool, handlers, slots: jobSlots, settings, logger }),
        },
        exportSlots,
        waitingRuns: createWaitingRuns(pool, settings.EXPORTD_EXPORT_SLOTS),
        capabilitySlots: capabilities.activitySlots,
        querySlots: queries.slots,
        jobSlots,
        settings,
      });
      const running = workers.run();
      stop = async () => {
        workers.shutdown();
        await running;
        await queries.close();
      };
    },
    stopWorker,
    setIdle: (value) => {
      isIdle = value;
    },
    reportWorker: async () => {
      const capacity = { slots: exportSlots, turns: behaviour.turns };
      const alarm = createFaultAlarm(pool, settings, logger, undefined, undefined, capacity);
      alarm.start();
      await alarm.stop();
    },
    reconcile: () => reconcileLoops.runOnce(),
    reconcilerDependencies,
    waitForReconciled: (condition, what, timeoutMs) => {
      const startedAt = performance.now();
      return waitFor(
        async () => {
          if (performance.now() - startedAt > reconcileAfterMs) await reconcileLoops.runOnce();
          return condition();
        },
        what,
        timeoutMs,
      );
    },
    send,
    command,
    createExport,
    createExportWithRun: async () => {
      const id = await createExport();
      const { status } = await command(id, 'backfill', lastHours(1));
      if (status !== 'applied') throw new Error(`The run was not created: ${status}`);
      return id;
    },
    runsOf,
    projectOf,
    waitForRun: async (batchExportId, status) => {
      let runs: ReadRun[] = [];
      await waitFor(
        async () => {
          runs = await runsOf(batchExportId);
          return runs.some((run) => run.status === status);
        },
        () => `a run that is ${status} among ${JSON.stringify(runs)}`,
      );
      const found = runs.find((run) => run.status === status);
      if (!found) throw new Error('The run is gone.');
      return found;
    },
    close: async () => {
      await stopWorker();
      await connection.close();
      await temporal.close();
      await database.drop();
    },
  };
}

/** Wakes the workflow of a backfill during each of its exports, so that it takes many steps: its runs do not need it. */
export const wakingBackfills =
  ({ pool, client, settings }: ControlPlaneHarness): Behaviour['duringExport'] =>
  async (runId) => {
    const { backfill_id } = await readRun(pool, runId);
    const workflowId = workflowIds(settings).backfill(backfill_id ?? '');
    await client.workflow.getHandle(workflowId).signal(wakeSignal);
  };

/** The last `count` full hours as the range of a backfill. */
export const lastHours = (count: number): { start_at: string; end_at: string } => ({
  start_at: hourAgo(count).toISOString(),
  end_at: hourAgo(0).toISOString(),
});
