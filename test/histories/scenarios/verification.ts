import { randomUUID } from 'node:crypto';
import { workflowIds } from '../../../src/contract/workflow_inputs.ts';
import { createVerificationClient } from '../../../src/temporal/clients/verification_client.ts';
import { requestVerification } from '../../../src/verify/verifications.ts';
import { hourAgo } from '../../setup/hours.ts';
import type { Scenario } from './scenario.ts';

export const verificationScenarios: readonly Scenario[] = [
  {
    histories: ['verification-completed'],
    play: async (stack, record) => {
      const id = await requestVerification(stack.pool, {
        batch_export_id: randomUUID(),
        team_id: 1,
        user_id: 1,
        deep: false,
        start: hourAgo(1).toISOString(),
        end: hourAgo(0).toISOString(),
      });
      await createVerificationClient(stack.client, stack.settings).start(id ?? '');
      const workflowId = workflowIds(stack.settings).verification(id ?? '');
      await stack.client.workflow.getHandle(workflowId).result();
      await record('verification-completed', workflowId);
    },
  },
];
