import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { DestinationError } from '../../../src/destination/destination.ts';
import { waitFor } from '../../setup/wait_for.ts';
import { lastHours, type ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import { createUntidyExport } from '../../temporal/untidy_export.ts';
import { readChain, waitUntilIdle, type Scenario } from './scenario.ts';

const quick = {
  EXPORTD_MAINTENANCE_INTERVAL: '100ms',
  EXPORTD_ORPHAN_RETENTION: '0s',
  EXPORTD_OLD_GENERATION_RETENTION: '0s',
  EXPORTD_CONTINUE_AS_NEW_COMMANDS: '10',
};

const workflowIdOf = (stack: ControlPlaneHarness) => workflowIds(stack.settings).maintenance();

/** Waits for an execution that has continued as new after an activity with this result. */
const waitForExecution = (stack: ControlPlaneHarness, result: 'Completed' | 'Failed') =>
  waitFor(
    async () =>
      (await readChain(stack, workflowIdOf(stack))).find(
        ({ isContinued, hasActivity }) => isContinued && hasActivity(result),
      ),
    `an execution with an activity that ${result}`,
  );

export const maintenanceScenarios: readonly Scenario[] = [
  {
    histories: ['maintenance-idle'],
    play: async (stack, record) => {
      await stack.reconcile();
      await waitUntilIdle(stack, workflowIdOf(stack));
      await record('maintenance-idle', workflowIdOf(stack));
    },
  },
  {
    histories: ['maintenance-cleaned'],
    settings: () => quick,
    play: async (stack, record) => {
      await stack.reconcile();
      await createUntidyExport(stack);
      const { runId } = await waitForExecution(stack, 'Completed');
      await record('maintenance-cleaned', workflowIdOf(stack), runId);
    },
  },
  {
    histories: ['maintenance-failing'],
    settings: () => quick,
    play: async (stack, record) => {
      stack.behaviour.cleanUp = () =>
        Promise.reject(
          new DestinationError('S3Unreachable', 'The S3 server did not respond.', { transient: true }),
        );
      await stack.reconcile();
      await createUntidyExport(stack);
      const { runId } = await waitForExecution(stack, 'Failed');
      await record('maintenance-failing', workflowIdOf(stack), runId);
    },
  },
  {
    histories: ['maintenance-compared'],
    settings: () => ({
      ...quick,
      EXPORTD_OLD_GENERATION_RETENTION: '7d',
      EXPORTD_COMPARISON_FIRST: '100ms',
    }),
    play: async (stack, record) => {
      const id = await stack.createExport();
      await stack.command(id, 'backfill', lastHours(1));
      await stack.waitForRun(id, 'Completed');
      await stack.reconcile();
      const { runId } = await waitForExecution(stack, 'Completed');
      await record('maintenance-compared', workflowIdOf(stack), runId);
    },
  },
];
