import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { NativeConnection, Worker } from '@temporalio/worker';
import { currentActivity, withHeartbeats } from '../../activities/heartbeats.ts';
import { queryWorkflowId } from '../../src/contract/workflow_ids.ts';
import type { BackgroundQueryInput } from '../../src/contract/workflow_inputs.ts';
import { workflowTypes } from '../../src/contract/workflow_types.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { createControlStack, type ControlStack } from '../temporal/control_plane_harness.ts';

let stack: ControlStack;
let connection: NativeConnection;
beforeAll(async () => {
  stack = await createControlStack();
  connection = await NativeConnection.connect({ address: stack.settings.TEMPORAL_ADDRESS });
});
afterAll(async () => {
  await connection.close();
  await stack.close();
});

it('a query counts as cancelled, too, when its attempt fails while it is being cancelled', async () => {
  const task_queue = `query-${randomUUID()}`;
  const begun = Promise.withResolvers<undefined>();
  const endings: string[] = [];
  const worker = await Worker.create({
    connection,
    taskQueue: task_queue,
    // A cancellation arrives with a heartbeat, of which the SDK would send one in 48 s.
    maxHeartbeatThrottleInterval: 200,
    workflowBundle: sharedBundle(),
    activities: {
      runStoredQuery: () =>
        withHeartbeats(
          currentActivity(),
          400,
          () => undefined,
          async (signal) => {
            begun.resolve(undefined);
            await once(signal, 'abort');
            throw new Error('The connection broke.');
          },
        ),
      endStoredQuery: ({ status }: { status: string }) => Promise.resolve(endings.push(status)),
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
      workflowId: queryWorkflowId(query),
      taskQueue: task_queue,
      args: [input],
    });
    await begun.promise;
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow();
  });
  expect(endings).toEqual(['cancelled']);
});
