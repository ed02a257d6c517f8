import { requestErasure } from '../../../src/decisions/erasures.ts';
import { workflowIds } from '../../../src/contract/workflow_inputs.ts';
import { createErasureClient } from '../../../src/temporal/clients/verification_client.ts';
import type { Scenario } from './scenario.ts';

export const erasureScenarios: readonly Scenario[] = [
  {
    histories: ['erasure-completed'],
    play: async (stack, record) => {
      const request = { team_id: 1, user_id: 1, distinct_ids: ['person'] };
      const id = await requestErasure(stack.journal, stack.keyRing, request);
      await createErasureClient(stack.client, stack.settings).start(id);
      const workflowId = workflowIds(stack.settings).erasure(id);
      await stack.client.workflow.getHandle(workflowId).result();
      await record('erasure-completed', workflowId);
    },
  },
];
