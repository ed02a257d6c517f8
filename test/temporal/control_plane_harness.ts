import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import { NativeConnection, type WorkflowBundleOption } from '@temporalio/worker';
import { createBackfillActivities } from '../../activities/backfill.ts';
import { createDestinationTestActivities } from '../../activities/destination_test.ts';
import type { ExportActivities } from '../../activities/export.ts';
import { createNotificationActivities } from '../../activities/notification.ts';
import { createQueryActivities, createQueryOutcomeActivities } from '../../activities/query.ts';
import { createMaintenancePlanner } from '../../activities/maintenance.ts';
import { createRunActivities } from '../../activities/run.ts';
import { createScheduleActivities } from '../../activities/schedule.ts';
import { createKeyRing, type KeyRing } from '../../src/config/key_ring.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { createPolicies, type Policies } from '../../src/decisions/policies.ts';
import { createRunRecorder, type RunRecorder } from '../../src/decisions/run_recorder.ts';
import type { RunStatus } from '../../src/domain/run.ts';
import { storeCommand, type Command, type CommandName, readCommand } from '../../src/journal/commands.ts';
import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/open_journal.ts';
import { createDeliverer } from '../../src/notifications/deliver.ts';
import { builtInQueryKinds } from '../../src/queries/built_in_kinds.ts';
import type { QueryKinds } from '../../src/queries/registry.ts';
import { everyRow } from '../../src/source/row_selection.ts';
import type { Source } from '../../src/source/source.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createBackfillClient } from '../../src/temporal/clients/backfill_client.ts';
import { createClient } from '../../src/temporal/connections.ts';
import { createSignalRecovery } from '../../src/temporal/reconcilers/signal_recovery.ts';
import { createExportSlots } from '../../src/temporal/worker/export_slots.ts';
import { reconcile } from '../../src/temporal/reconcilers/registry.ts';
import { createNotificationClient } from '../../src/temporal/clients/notification_client.ts';
import { createQueryClient } from '../../src/temporal/clients/query_client.ts';
import { createQueryActivityDependencies } from '../../src/temporal/worker/query_activity_dependencies.ts';
import { createRunStarter } from '../../src/temporal/clients/run_starter.ts';
import { installRuntime } from '../../src/temporal/worker/runtime.ts';
import { createScheduleClient, type ScheduleClient } from '../../src/temporal/clients/schedule_client.ts';
import { registerSearchAttributes } from '../../src/temporal/search_attributes.ts';
import { createMaintenanceClient } from '../../src/temporal/clients/maintenance_client.ts';
import { createWorkers } from '../../src/temporal/worker/workers.ts';
import { definition } from '../decisions/commander.ts';
import { hourAgo } from '../setup/hours.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { generousTimeouts } from '../setup/timeouts.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createBehaviour, standInExport, standInSource, standInUpkeep, type Behaviour } from './fakes.ts';

export type { Behaviour };

/** Much longer than anything takes on a machine that is not very busy. */
const reconcileAfterMs = 60_000;

export interface ShownRun {
  readonly id: string;
  readonly status: RunStatus;
  readonly latest_error: string | null;
  readonly retry_number: number;
  readonly records_completed: number;
  readonly generation: number;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly batch_export_id: string;
}

/** The control plane on a database and task queues of its own, with stand-ins for source and destination. */
export interface ControlStack {
  readonly pool: Pool;
  readonly journal: Journal;
  readonly policies: Policies;
  readonly settings: Settings;
  /** From now on the activities of a run that begins have so long; all they need when that is undefined. */
  setBudget(milliseconds: number | undefined): void;
  /** Seals the secrets of webhooks. */
  readonly keyRing: KeyRing;
  readonly client: Client;
  readonly schedules: ScheduleClient;
  readonly behaviour: Behaviour;
  /** Starts the worker, with other workflows than the product's where a test gives it some. */
  startWorker(bundle?: WorkflowBundleOption): Promise<void>;
  stopWorker(): Promise<void>;
  /** One pass of the reconciler. */
  reconcile(): Promise<void>;
  /** `until`; after a minute, what Temporal was too busy to take at once is left to the reconciler, as in a worker. */
  untilReconciled: typeof waitFor;
  /** Stores a command and signals it, as the facade does. */
  send(batchExportId: string, name: CommandName, body?: Record<string, unknown>): Promise<string>;
  /** The same, and waits for its outcome. */
  command(batchExportId: string, name: CommandName, body?: Record<string, unknown>): Promise<Command>;
  /** Creates an export and waits until it is there. */
  createExport(more?: object): Promise<string>;
  runsOf(batchExportId: string): Promise<ShownRun[]>;
  runIn(batchExportId: string, status: RunStatus): Promise<ShownRun>;
  close(): Promise<void>;
}

/** Source and destination of a stack that has real ones. */
export interface DataPlane {
  readonly source: Source;
  readonly exportActivities: ExportActivities;
}

/** Starts the stack, without its worker; with stand-ins for source and destination unless it is given real ones. */
export async function createControlStack(
  more: Record<string, string> = {},
  makeDataPlane?: (database: TestDatabase, settings: Settings, recorder: RunRecorder) => DataPlane,
  queryKinds?: QueryKinds,
): Promise<ControlStack> {
  const database = await createTestDatabase();
  const settings = readSettings({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
    // What ends a worker is told nowhere else: whoever waits for its work would only wait in vain.
    EXPORTD_LOG_LEVEL: 'error',
    EXPORTD_JITTER_LONG: '0s',
    EXPORTD_JITTER_SHORT_FRACTION: '0',
    EXPORTD_ACTIVITY_RETRY_INITIAL: '50ms',
    EXPORTD_ACTIVITY_RETRY_MAX: '200ms',
    ...generousTimeouts,
    ...more,
  });
  const logger = createLogger('test', settings);
  installRuntime(logger);
  const temporal = createClient(settings);
  const { client } = temporal;
  await registerSearchAttributes(temporal, AbortSignal.timeout(60_000));
  const connection = await NativeConnection.connect({ address: settings.TEMPORAL_ADDRESS });
  const workflowBundle = sharedBundle();
  const { pool } = database;
  const keyRing = createKeyRing(`test:${randomBytes(32).toString('base64')}`);
  const journal = openJournal(pool);
  const recorder = createRunRecorder(journal);
  const behaviour = createBehaviour();
  const data = makeDataPlane?.(database, settings, recorder) ?? {
    source: standInSource(behaviour),
    exportActivities: standInExport(recorder, behaviour, logger),
  };
  // The input of a run is made of them when it starts.
  const runSettings = { ...settings };
  const control = {
    journal,
    client,
    policies: createPolicies(settings),
    recorder,
    source: data.source,
    readSelection: () => Promise.resolve(everyRow),
    publishEmpty: (runId: string) => behaviour.publishEmpty(runId),
    runs: createRunStarter(client, runSettings),
    schedules: createScheduleClient(client, settings),
    backfills: createBackfillClient(client, pool, settings),
    backgroundQueries: createQueryClient(client, settings),
    maintenance: createMaintenanceClient(client, settings),
    notifications: createNotificationClient(client, pool, settings),
    signalRecovery: createSignalRecovery(client, journal, settings),
    logger,
    settings,
  };
  const queries = createQueryActivityDependencies({
    pool,
    kinds: queryKinds ?? builtInQueryKinds(settings),
    logger,
    settings,
  });
  let stop: (() => Promise<void>) | undefined;

  const send = async (batchExportId: string, name: CommandName, body: Record<string, unknown> = {}) => {
    const { id } = await storeCommand(pool, {
      id: randomUUID(),
      batch_export_id: batchExportId,
      team_id: 1,
      name,
      body,
      fingerprint: '',
      idempotency_key: null,
      user_id: null,
    });
    await control.schedules.signal({ batch_export_id: batchExportId, name, id });
    return id;
  };
  const command = async (batchExportId: string, name: CommandName, body?: Record<string, unknown>) => {
    const id = await send(batchExportId, name, body);
    let decided: Command | undefined;
    await waitFor(async () => {
      decided = await readCommand(pool, id);
      return decided?.status !== 'pending';
    }, `the outcome of ${name}`);
    if (!decided) throw new Error(`The command ${id} is gone.`);
    return decided;
  };
  const runsOf = async (batchExportId: string) =>
    (
      await pool.query<ShownRun>(
        'select * from exportd.batch_export_runs where batch_export_id = $1 order by position',
        [batchExportId],
      )
    ).rows;
  const stopWorker = async () => {
    await stop?.();
    stop = undefined;
  };
  return {
    pool,
    journal,
    policies: control.policies,
    settings,
    setBudget: (milliseconds) => {
      runSettings.EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT = milliseconds;
    },
    keyRing,
    client,
    schedules: control.schedules,
    behaviour,
    startWorker: async (bundle = workflowBundle) => {
      const workers = await createWorkers({
        connection,
        workflowBundle: bundle,
        activities: {
          control: {
            ...createScheduleActivities(control),
            ...createBackfillActivities(control),
            ...createRunActivities(control),
            ...createDestinationTestActivities({ testDestination: () => Promise.resolve([]), logger }),
            ...createMaintenancePlanner(control),
            ...createQueryOutcomeActivities(queries),
          },
          export: data.exportActivities,
          maintenance: {
            ...standInUpkeep(behaviour, logger),
            ...createNotificationActivities({ deliver: createDeliverer(pool, keyRing, settings), logger }),
          },
          query: createQueryActivities(queries),
        },
        exportSlots: createExportSlots(settings),
        settings,
      });
      const running = workers.run();
      stop = async () => {
        workers.shutdown();
        await running;
      };
    },
    stopWorker,
    reconcile: () => reconcile(control),
    untilReconciled: (condition, what, patienceMs) => {
      const began = performance.now();
      return waitFor(
        async () => {
          if (performance.now() - began > reconcileAfterMs) await reconcile(control);
          return condition();
        },
        what,
        patienceMs,
      );
    },
    send,
    command,
    createExport: async (members = {}) => {
      const id = randomUUID();
      const { status } = await command(id, 'create', {
        // Of an hour that ends while a test runs, no run comes.
        definition: { ...definition, interval: 'hour', end_at: hourAgo(0).toISOString(), ...members },
        paused: false,
      });
      if (status !== 'applied') throw new Error(`The export was not created: ${status}`);
      return id;
    },
    runsOf,
    runIn: async (batchExportId, status) => {
      let runs: ShownRun[] = [];
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
      await queries.close();
      await temporal.close();
      await database.drop();
    },
  };
}

/** The last `count` whole hours as the range of a backfill. */
export const lastHours = (count: number): { start_at: string; end_at: string } => ({
  start_at: hourAgo(count).toISOString(),
  end_at: hourAgo(0).toISOString(),
});
