import type { Client } from '@temporalio/client';
import type { RunInterval } from '../../contract/workflow_ids.ts';
import { rounded } from '../statistics.ts';
import type { ExecutionCost } from './result.ts';
import { costOf, readEvents } from './histories.ts';

/** A run whose history is read. */
export type SampledRun = RunInterval;

/** Average cost of the latest executions of some workflow ids since a time. */
export async function averageCost(
  client: Client,
  workflowIds: readonly string[],
  since = 0,
): Promise<ExecutionCost> {
  let [events, actions] = [0, 0];
  for (const workflowId of workflowIds) {
    const cost = costOf(await readEvents(client, { workflowId }, since));
    events += cost.events;
    actions += cost.actions;
  }
  const sampled = workflowIds.length;
  const average = (sum: number) => (sampled === 0 ? 0 : rounded(sum / sampled));
  return { sampled, events: average(events), actions: average(actions) };
}
