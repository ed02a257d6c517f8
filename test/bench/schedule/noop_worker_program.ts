import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';

/**
 * The worker process of the no-op workflows, with the same options as exportd's: one worker for workflows, one for
 * activities. Arguments: address, namespace, task queues of workflows and of activities, activity slots, and the file that
 * caches the workflow bundle.
 */

const [address = '', namespace = '', workflowQueue = '', activityQueue = '', slots = '', codePath = ''] =
  process.argv.slice(2);
Runtime.install({
  logger: new DefaultLogger('WARN', ({ message }) => process.stderr.write(`${message}\n`)),
  telemetryOptions: { logging: { filter: { core: 'WARN', other: 'ERROR' }, forward: {} } },
});
const connection = await NativeConnection.connect({ address });
const shared = { connection, namespace, shutdownGraceTime: '5s', shutdownForceTime: '10s' } as const;
if (!existsSync(codePath)) {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(import.meta.dirname, 'noop_workflow.ts'),
    logger: new DefaultLogger('WARN'),
  });
  writeFileSync(codePath, code);
}
const workflows = await Worker.create({
  ...shared,
  taskQueue: workflowQueue,
  workflowBundle: { codePath },
  enableNonLocalActivities: false,
  workflowFailureErrorTypes: { '*': ['NondeterminismError'] },
});
const activities = await Worker.create({
  ...shared,
  taskQueue: activityQueue,
  activities: { doNothing: () => Promise.resolve() },
  maxConcurrentActivityTaskExecutions: Number(slots),
});
await Promise.all([workflows.run(), activities.run()]);
// An open connection would keep the process running.
await connection.close();
