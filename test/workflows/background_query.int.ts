import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createQueryActivities } from '../../activities/query.ts';
import { workflowIds, workflowTypes } from '../../src/contract/workflow_ids.ts';
import type { BackgroundQueryInput } from '../../src/contract/workflow_inputs.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../temporal/control_plane_harness.ts';

let stack: ControlPlaneHarness;
let connection: NativeConnection;
beforeAll(async () => {
  stack = await createControlPlaneHarness();
  connection = await NativeConnection.connect({ address: stack.settings.TEMPORAL_ADDRESS });
});
afterAll(async () => {
  await connection.close();
  await stack.close();
});

it('a query is cancelled even if its attempt fails during the cancellation', async () => {
  const task_queue = `query-${randomUUID()}`;
  const started = Promise.withResolvers<undefined>();
  const outcomes: string[] = [];
  const worker = await Worker.create({
    connection,
    taskQueue: task_queue,
    // Heartbeats deliver a cancellation; by default the SDK would send one every 48 s.
    maxHeartbeatThrottleInterval: 200,
    workflowBundle: sharedBundle(),
    activities: {
      ...createQueryActivities({
        runQuery: async (_, signal) => {
          started.resolve(undefined);
          await once(signal, 'abort');
          throw new Error('The connection was lost.');
        },
        recordOutcome: () => Promise.resolve(),
        heartbeatTimeoutMs: 400,
        logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
      }),
      recordBackgroundOutcome: ({ status }: { status: string }) => Promise.resolve(outcomes.push(status)),
    },
  });
  const query = { team_id: 1, id: randomUUID(), execution_id: randomUUID() };
  const input: BackgroundQueryInput = {
    execution_id: query.execution_id,
    task_queue,
    timeout_ms: 600_000,
    heartbeat_timeout_ms: 60_000,
  };
  await worker.runUntil(async () => {
    const handle = await stack.client.workflow.start(workflowTypes.backgroundQuery, {
      workflowId: workflowIds(stack.settings).query(query),
      taskQueue: task_queue,
      args: [input],
    });
    await started.promise;
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
  });
  expect(outcomes).toEqual(['cancelled']);
});
