import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { bundleWorkflows } from '../../src/temporal/worker/bundle.ts';
import { startsPerInterval } from '../disasters/run_starts.ts';
import { waitFor } from '../setup/wait_for.ts';
import {
  createControlPlaneHarness,
  lastHours,
  type ControlPlaneHarness,
} from '../temporal/control_plane_harness.ts';
import { blockedBarrier } from '../temporal/fakes.ts';
import { commandsInWords } from '../journal/read_commands.ts';

let stack: ControlPlaneHarness;
let changed: { code: string };
beforeAll(async () => {
  // A workflow that the SDK cannot fail is replaced after five workflow task timeouts.
  stack = await createControlPlaneHarness({ EXPORTD_WORKFLOW_TASK_TIMEOUT: '3s' });
  changed = await bundleWorkflows(join(import.meta.dirname, 'changed/index.ts'));
  await stack.startWorker();
});
afterAll(() => stack.close());

const commandsOf = (id: string) => commandsInWords(stack.pool, id);

/** Counts the events of an export's runs by type. */
async function runEvents(id: string): Promise<Record<string, number>> {
  const { rows } = await stack.pool.query<{ event_type: string; count: number }>(
    `select event_type, count(*)::int from exportd.journal_events event
     where stream_id in (select run.id from exportd.batch_export_runs run where batch_export_id = $1)
     group by event_type`,
    [id],
  );
  return Object.fromEntries(rows.map(({ event_type, count }) => [event_type, count]));
}

describe('a version whose workflows cannot replay the histories of the previous one', () => {
  it('fails them and restarts them from the journal, losing no command and running nothing twice', async () => {
    let settled = false;
    let exports = 0;
    stack.behaviour.checkBarrier = () =>
      Promise.resolve({
        state: settled ? { phase: 'open' } : blockedBarrier,
        wait_ms: 50,
        blocked_by: [],
      });
    stack.behaviour.duringExport = () => {
      exports += 1;
      return Promise.resolve();
    };
    const id = await stack.createExport();
    await stack.command(id, 'update', { changes: { name: 'Before' } });
    const { outcome } = await stack.command(id, 'backfill', lastHours(5));
    const backfillId = outcome?.backfill_id ?? '';
    await waitFor(async () => (await stack.runsOf(id)).length === 3, 'the first runs of the backfill');
    const waiting = await stack.runsOf(id);
    const ids = workflowIds(stack.settings);
    const running = [ids.schedule(id), ids.backfill(backfillId), ...waiting.map(ids.run)];
    for (const workflowId of running)
      await waitFor(
        async () =>
          ((
            await stack.client.workflow
              .getHandle(workflowId)
              .describe()
              .catch(() => undefined)
          )?.historyLength ?? 0) > 4,
        `${workflowId} makes progress`,
      );
    const executions = await Promise.all(
      running.map(async (workflowId) => ({
        workflowId,
        runId: (await stack.client.workflow.getHandle(workflowId).describe()).runId,
      })),
    );
    await stack.stopWorker();
    await stack.send(id, 'update', { changes: { name: 'While no worker ran' } });
    await stack.send(id, 'pause');

    await stack.startWorker(changed);
    for (const { workflowId, runId } of executions) {
      await stack.client.workflow
        .getHandle(workflowId, runId)
        .signal('wake')
        .catch(() => undefined);
      await waitFor(async () => {
        // The reconciler replaces a workflow that the SDK cannot fail, so it keeps running as in a worker.
        await stack.reconcile();
        const { status } = await stack.client.workflow.getHandle(workflowId, runId).describe();
        return status.name === 'FAILED' || status.name === 'TERMINATED';
      }, `${workflowId} ends`);
    }
    const [schedule] = executions;
    const failed = await stack.client.workflow.getHandle(ids.schedule(id), schedule?.runId).describe();
    expect(failed.status.name).toBe('FAILED');
    settled = true;
    await stack.send(id, 'unpause');

    const hours = async () => (await stack.runsOf(id)).map(({ status }) => status);
    await waitFor(async () => {
      // An execution may have failed just after the last pass had checked it.
      await stack.reconcile();
      return (await hours()).filter((status) => status === 'Completed').length === 5;
    }, 'the backfill');
    expect(await hours()).toEqual(Array.from({ length: 5 }, () => 'Completed'));
    expect((await startsPerInterval(stack.pool, id)).map(({ started }) => started)).toEqual([1, 1, 1, 1, 1]);
    expect(exports).toBe(5);
    await waitFor(async () => !(await commandsOf(id)).join().includes('pending'), 'all outcomes');
    expect(await commandsOf(id)).toEqual([
      'create applied',
      'update applied',
      'backfill applied',
      'update applied',
      'pause applied',
      'unpause applied',
    ]);
    const name = await stack.pool.query('select name, paused from exportd.batch_exports where id = $1', [id]);
    expect(name.rows).toEqual([{ name: 'While no worker ran', paused: false }]);
    expect(await runEvents(id)).toMatchObject({ RunCreated: 5, RunCompleted: 5 });
  });
});
