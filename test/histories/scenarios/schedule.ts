import { wakeSignal, type ScheduleInput } from '../../../src/contract/workflow_inputs.ts';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { waitFor } from '../../setup/wait_for.ts';
import type { ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import { readChain, waitUntilIdle, type Scenario } from './scenario.ts';
import { readCommands } from '../../journal/read_commands.ts';

const waitUntilDecided = (stack: ControlPlaneHarness, id: string, count: number) =>
  waitFor(async () => {
    const commands = await readCommands(stack.pool, id);
    return commands.length === count && commands.every(({ status }) => status !== 'pending');
  }, `${count} decided commands`);

const nameOf = (index: number) => (index % 2 === 0 ? 'pause' : 'unpause');

async function sendManualSignals(stack: ControlPlaneHarness, id: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1)
    await stack.client.workflow.getHandle(workflowIds(stack.settings).schedule(id)).signal(nameOf(index), {});
}

export const scheduleScenarios: readonly Scenario[] = [
  {
    histories: ['schedule-created', 'schedule-commands', 'schedule-deleted'],
    play: async (stack, record) => {
      const id = await stack.createExport();
      const workflowId = workflowIds(stack.settings).schedule(id);
      await waitUntilIdle(stack, workflowId);
      await record('schedule-created', workflowId);
      await stack.command(id, 'pause');
      await stack.command(id, 'unpause');
      await waitUntilIdle(stack, workflowId);
      await record('schedule-commands', workflowId);
      await stack.command(id, 'delete');
      await stack.client.workflow.getHandle(workflowId).result();
      await record('schedule-deleted', workflowId);
    },
  },
  {
    histories: ['schedule-manual-signals'],
    play: async (stack, record) => {
      const id = await stack.createExport();
      await sendManualSignals(stack, id, 10);
      await waitUntilDecided(stack, id, 11);
      await waitUntilIdle(stack, workflowIds(stack.settings).schedule(id));
      await record('schedule-manual-signals', workflowIds(stack.settings).schedule(id));
    },
  },
  {
    histories: ['schedule-continued', 'schedule-carried', 'schedule-continued-open'],
    settings: () => ({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '5' }),
    play: async (stack, record) => {
      const id = await stack.createExport();
      const workflowId = workflowIds(stack.settings).schedule(id);
      let sent = 1;
      // Signals that arrive during a step are carried over.
      const carried = await waitFor(async () => {
        await sendManualSignals(stack, id, 12);
        sent += 12;
        await waitUntilDecided(stack, id, sent);
        const links = await readChain(stack, workflowId);
        return links.find(({ input, isContinued }) => isContinued && carriesSignals(input));
      }, 'an execution with carried signals');
      const [first] = await readChain(stack, workflowId);
      await record('schedule-continued', workflowId, first?.runId);
      await record('schedule-carried', workflowId, carried.runId);
      await stack.command(id, 'pause');
      await waitUntilIdle(stack, workflowId);
      await record('schedule-continued-open', workflowId);
    },
  },
  {
    histories: ['schedule-quiet-continued'],
    play: async (stack, record) => {
      const id = await stack.createExport();
      const workflowId = workflowIds(stack.settings).schedule(id);
      const first = await waitFor(async () => {
        await stack.client.workflow.getHandle(workflowId).signal(wakeSignal);
        await waitUntilIdle(stack, workflowId);
        const [link, next] = await readChain(stack, workflowId);
        return next && link;
      }, 'a new execution');
      await record('schedule-quiet-continued', workflowId, first.runId);
    },
  },
  {
    histories: ['schedule-flood', 'schedule-flood-continued'],
    settings: () => ({ EXPORTD_CONTINUE_AS_NEW_COMMANDS: '50' }),
    play: async (stack, record) => {
      const id = await stack.createExport();
      const workflowId = workflowIds(stack.settings).schedule(id);
      await stack.stopWorker();
      await sendManualSignals(stack, id, 110);
      await stack.startWorker();
      await waitUntilDecided(stack, id, 111);
      await waitUntilIdle(stack, workflowId);
      const [first, second] = await readChain(stack, workflowId);
      await record('schedule-flood', workflowId, first?.runId);
      await record('schedule-flood-continued', workflowId, second?.runId);
    },
  },
];

const carriesSignals = (input: unknown): boolean => ((input as ScheduleInput).signals ?? []).length > 0;
