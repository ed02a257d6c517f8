import closeWithGrace from 'close-with-grace';
import { createAppendActivities } from '../../activities/append.ts';
import { createDestinationTestActivities } from '../../activities/destination_test.ts';
import { createExportActivities } from '../../activities/export.ts';
import { createExportTurns } from '../../activities/export_turns.ts';
import { createNotifyActivities } from '../../activities/notify.ts';
import { createEmptyPublisher } from '../../activities/publish_empty.ts';
import { createQueryActivities, createQueryEndActivities } from '../../activities/query.ts';
import { createUpkeepActivities, createUpkeepLook } from '../../activities/upkeep.ts';
import { createKeyRing, type KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import { deleteExpired } from '../decisions/log_retention.ts';
import { policiesOf } from '../decisions/policies.ts';
import { createRunSteps } from '../decisions/run_steps.ts';
import { createDestinationTester } from '../destination/destination_tests.ts';
import { createDestinationOpener } from '../destination/open_destination.ts';
import { createPlaceOpener } from '../destination/open_place.ts';
import { createSelectionReader } from '../destination/row_selections.ts';
import { createByteBudget } from '../encoding/byte_budget.ts';
import { createEncoderPool } from '../encoding/encoder_pool.ts';
import { createPool } from '../journal/database.ts';
import { createJournal } from '../journal/journal.ts';
import { createDeliverer } from '../notifications/deliver.ts';
import { productQueryKinds } from '../queries/product_kinds.ts';
import { deleteExpiredQueries } from '../queries/retention.ts';
import { createSource } from '../source/postgres_source.ts';
import { createLogger, type Logger } from '../telemetry/logger.ts';
import { createBackfillClient } from './backfill_client.ts';
import { workflowBundleOf } from './bundle.ts';
import { connectWorkers, createClient, whenTemporalAnswers } from './connections.ts';
import { createNotificationClient } from './notification_client.ts';
import { createQueryClient } from './query_client.ts';
import { reconcileQueries } from './query_reconcile.ts';
import { createQueryWork } from './query_work.ts';
import { createLostSignals } from './lost_signals.ts';
import { reconcile } from './reconcile.ts';
import { createExportSlots } from './export_slots.ts';
import { createReconciler } from './reconciler.ts';
import { createRunStarter } from './run_starter.ts';
import { installRuntime } from './runtime.ts';
import { createScheduleClient } from './schedule_client.ts';
import { registerSearchAttributes } from './search_attributes.ts';
import { createUpkeepClient } from './upkeep_client.ts';
import { createWorkers } from './worker.ts';

/** Connections to the control database: appends are short, and more at once would only queue at the streams' locks. */
const controlConnections = 20;
/** After a second signal, or this long after the first, the process ends without waiting any more. */
const longestShutdownMs = 15_000;

/**
 * Runs a worker process: the workflows with their decisions, the exports, and the reconciler. Writes its log to
 * standard error and nothing to standard output. Ends on SIGTERM or SIGINT; throws what a restart may cure.
 */
export async function runWorker(settings: Settings): Promise<void> {
  const logger = createLogger('worker', settings);
  const keyRing = createKeyRing(settings.EXPORTD_ENCRYPTION_KEYS);
  installRuntime(logger);
  const stopping = new AbortController();
  const ended = Promise.withResolvers<undefined>();
  closeWithGrace({ delay: longestShutdownMs, logger: false }, async ({ err, signal: received }) => {
    if (err) logger.fatal({ err }, 'The worker met an error that nobody handled.');
    else logger.info({ signal: received }, 'The worker shuts down.');
    stopping.abort();
    await ended.promise;
  });
  try {
    await serve(settings, logger, keyRing, stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    ended.resolve(undefined);
  }
}

async function serve(
  settings: Settings,
  logger: Logger,
  keyRing: KeyRing,
  signal: AbortSignal,
): Promise<void> {
  const pool = createPool(settings.DATABASE_URL, {
    max: controlConnections,
    connectTimeoutMs: settings.EXPORTD_CONTROL_CONNECT_TIMEOUT_MS,
    statementTimeoutMs: settings.EXPORTD_CONTROL_STATEMENT_TIMEOUT_MS,
  });
  const temporal = createClient(settings);
  const { client } = temporal;
  const source = createSource({
    sourceUrl: settings.SOURCE_DATABASE_URL ?? settings.DATABASE_URL,
    primaryUrl: settings.SOURCE_PRIMARY_DATABASE_URL,
    settings,
  });
  const encoders = createEncoderPool({ threads: settings.EXPORTD_ENCODER_THREADS });
  const journal = createJournal(pool);
  const selectionOf = createSelectionReader(pool);
  const control = {
    journal,
    client,
    policies: policiesOf(settings),
    runSteps: createRunSteps(journal),
    source,
    selectionOf,
    runs: createRunStarter(client, settings),
    schedules: createScheduleClient(client, settings),
    backfills: createBackfillClient(client, pool, settings),
    lostSignals: createLostSignals(client, journal, settings),
    upkeep: createUpkeepClient(client, settings),
    notifications: createNotificationClient(client, pool, settings),
    logger,
    settings,
  };
  const exportSlots = createExportSlots(settings);
  const exporting = {
    slots: exportSlots,
    turns: createExportTurns(settings.EXPORTD_SLOTS_PER_EXPORT ?? Infinity, exportSlots),
    runSteps: control.runSteps,
    source,
    encoders,
    memory: createByteBudget(settings.EXPORTD_MEMORY_BYTES),
    selectionOf,
    openDestination: createDestinationOpener(pool, keyRing, settings),
    logger,
    settings,
  };
  const queries = createQueryWork({ pool, kinds: productQueryKinds(settings), logger, settings });
  const background = createQueryClient(client, settings);
  const pass = async (): Promise<void> => {
    // A namespace that was lost comes back without them, and refuses every start that names one.
    await registerSearchAttributes(temporal, signal);
    await reconcile(control);
    await reconcileQueries({ client, pool, background, logger, settings });
    // Last, so that what they meet keeps no run waiting.
    await deleteExpired(pool, settings.EXPORTD_LOG_RETENTION_MS);
    await deleteExpiredQueries(pool, settings);
  };
  const reconciler = createReconciler({ pool, pass, settings, logger });
  try {
    const workflowBundle = await workflowBundleOf(settings);
    const connection = await whenTemporalAnswers(() => connectWorkers(settings), logger, signal);
    await whenTemporalAnswers(() => registerSearchAttributes(temporal, signal), logger, signal);
    const workers = await createWorkers({
      connection,
      workflowBundle,
      appendActivities: createAppendActivities({
        ...control,
        publishEmpty: createEmptyPublisher(exporting, settings),
      }),
      destinationTestActivities: createDestinationTestActivities({
        testDestination: createDestinationTester(pool, keyRing, settings),
        logger,
      }),
      exportActivities: createExportActivities(exporting),
      exportSlots,
      upkeepLook: createUpkeepLook(control),
      notifyActivities: createNotifyActivities({ deliver: createDeliverer(pool, keyRing, settings), logger }),
      queryActivities: createQueryActivities(queries),
      queryEndActivities: createQueryEndActivities(queries),
      upkeepActivities: createUpkeepActivities({
        ...control,
        openPlace: createPlaceOpener(pool, keyRing, settings),
      }),
      settings,
    });
    signal.addEventListener('abort', () => workers.shutdown());
    reconciler.start();
    logger.info({ task_queue: settings.EXPORTD_TASK_QUEUE }, 'The worker runs.');
    await workers.run();
    await connection.close();
  } finally {
    await reconciler.stop();
    await Promise.allSettled([encoders.close(), source.close(), queries.close(), temporal.close()]);
    await pool.end();
  }
}
