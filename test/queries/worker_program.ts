import { NativeConnection, Worker } from '@temporalio/worker';
import { createQueryActivities } from '../../activities/query.ts';
import { readSettings } from '../../src/config/settings.ts';
import { createPool } from '../../src/journal/database.ts';
import { createInlineExecutor } from './inline_executor.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';
import { createQueryActivityDependencies } from '../../src/temporal/worker/query_worker.ts';
import { installRuntime } from '../../src/temporal/worker/worker_process.ts';
import { taskQueues } from '../../src/temporal/task_queues.ts';
import { fakeKinds } from './fake_kind.ts';

/** A process that runs queries of the fake kind, for tests that kill it. Configured by its environment. */
const settings = readSettings(process.env);
const logger = createLogger('test', settings);
installRuntime(logger);
const pool = createPool(settings.DATABASE_URL, { max: 2 });
const worker = await Worker.create({
  connection: await NativeConnection.connect({ address: settings.TEMPORAL_ADDRESS }),
  namespace: settings.TEMPORAL_NAMESPACE,
  taskQueue: taskQueues(settings).query,
  activities: createQueryActivities(
    createQueryActivityDependencies({
      pool,
      executor: createInlineExecutor(fakeKinds),
      logger,
      settings,
      metrics: createMetrics('worker'),
    }),
  ),
});
await worker.run();
