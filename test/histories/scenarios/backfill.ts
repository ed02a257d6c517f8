import { ApplicationFailure } from '@temporalio/common';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { waitFor } from '../../setup/wait_for.ts';
import {
  type ControlPlaneHarness,
  lastHours,
  wakingBackfills,
} from '../../temporal/control_plane_harness.ts';
import { readChain, waitUntilIdle, waitUntilStarted, type Scenario } from './scenario.ts';

/** Starts a backfill of a new export. */
async function startBackfill(stack: ControlPlaneHarness, hours: number) {
  const id = await stack.createExport();
  const { outcome } = await stack.command(id, 'backfill', lastHours(hours));
  const workflowId = workflowIds(stack.settings).backfill(outcome?.backfill_id ?? '');
  await waitUntilStarted(stack, workflowId);
  return { id, workflowId };
}

export const backfillScenarios: readonly Scenario[] = [
  {
    histories: ['backfill-open', 'backfill-completed'],
    play: async (stack, record) => {
      const released = Promise.withResolvers<undefined>();
      stack.behaviour.duringExport = () => released.promise;
      const { id, workflowId } = await startBackfill(stack, 6);
      await waitFor(
        async () =>
          (await stack.runsOf(id)).filter(({ status }) => status === 'Running').length ===
          stack.settings.EXPORTD_BACKFILL_CONCURRENCY,
        'the first runs',
      );
      await waitUntilIdle(stack, workflowId);
      await record('backfill-open', workflowId);
      released.resolve(undefined);
      await stack.client.workflow.getHandle(workflowId).result();
      await record('backfill-completed', workflowId);
    },
  },
  {
    histories: ['backfill-continued', 'backfill-continued-completed'],
    settings: () => ({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' }),
    play: async (stack, record) => {
      stack.behaviour.duringExport = wakingBackfills(stack);
      const { workflowId } = await startBackfill(stack, 24);
      await stack.client.workflow.getHandle(workflowId).result();
      const links = await readChain(stack, workflowId);
      await record('backfill-continued', workflowId, links[0]?.runId);
      await record('backfill-continued-completed', workflowId, links.at(-1)?.runId);
    },
  },
  {
    histories: ['backfill-paused'],
    play: async (stack, record) => {
      stack.behaviour.duringExport = () =>
        Promise.reject(ApplicationFailure.nonRetryable('The bucket was deleted.', 'NoSuchBucket'));
      const { workflowId } = await startBackfill(stack, 12);
      const handle = stack.client.workflow.getHandle(workflowId);
      await waitFor(
        async () =>
          (await handle.describe()).typedSearchAttributes.getAll().some(({ value }) => value === 'Paused'),
        'the automatic pause',
      );
      await waitUntilIdle(stack, workflowId);
      await record('backfill-paused', workflowId);
    },
  },
];
