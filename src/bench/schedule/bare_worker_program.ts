import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { bareQueues } from './bare_queues.ts';

/**
 * The worker of the bare workflows, a process of its own like exportd's, with workers of the same options: one for
 * workflows, one for activities. Arguments: address, namespace, prefix of the task queues, slots for activities, and the
 * file that keeps the bundle for the next time.
 */

const [address = '', namespace = '', prefix = '', slots = '', codePath = ''] = process.argv.slice(2);
Runtime.install({
  logger: new DefaultLogger('WARN', ({ message }) => process.stderr.write(`${message}\n`)),
  telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
});
const connection = await NativeConnection.connect({ address });
const queues = bareQueues(prefix);
const shared = { connection, namespace, shutdownGraceTime: '5s', shutdownForceTime: '10s' } as const;
if (!existsSync(codePath)) {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(import.meta.dirname, 'bare_workflow.ts'),
    logger: new DefaultLogger('WARN'),
  });
  writeFileSync(codePath, code);
}
const workflows = await Worker.create({
  ...shared,
  taskQueue: queues.workflows,
  workflowBundle: { codePath },
  enableNonLocalActivities: false,
  workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
});
const activities = await Worker.create({
  ...shared,
  taskQueue: queues.activities,
  activities: { doNothing: () => Promise.resolve() },
  maxConcurrentActivityTaskExecutions: Number(slots),
});
await Promise.all([workflows.run(), activities.run()]);
// An open connection would keep the process from ending.
await connection.close();
