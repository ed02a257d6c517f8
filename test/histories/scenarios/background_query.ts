import { randomUUID } from 'node:crypto';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { readStatus, registerQuery } from '../../../src/queries/statuses.ts';
import { createQueryClient } from '../../../src/temporal/clients/query_client.ts';
import { fakeKinds, statement } from '../../queries/fake_kind.ts';
import { waitFor } from '../../setup/wait_for.ts';
import type { ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import { type Scenario, waitUntilWaiting } from './scenario.ts';
import { createProject } from '../../../src/http/accounts/projects.ts';

async function startQuery(stack: ControlPlaneHarness, sql: string) {
  const { id: team_id } = await createProject(stack.pool, { name: 'Shop', timezone: 'Europe/Berlin' });
  const { kind, ...query } = statement(sql);
  const id = randomUUID();
  const { status } = await registerQuery(stack.pool, {
    id,
    team_id,
    kind,
    query,
    variables: {},
    cache_key: '',
    user_id: 1,
    query_async: true,
  });
  await createQueryClient(stack.client, stack.settings).start({
    team_id,
    id,
    execution_id: status.execution_id,
  });
  return { team_id, id, workflowId: workflowIds(stack.settings).query({ team_id, id }) };
}

export const backgroundQueryScenarios: readonly Scenario[] = [
  {
    histories: ['background-query-completed'],
    queryKinds: fakeKinds,
    play: async (stack, record) => {
      const { workflowId } = await startQuery(stack, 'select 1');
      await stack.client.workflow.getHandle(workflowId).result();
      await record('background-query-completed', workflowId);
    },
  },
  {
    histories: ['background-query-running', 'background-query-cancelled'],
    queryKinds: fakeKinds,
    play: async (stack, record) => {
      const { team_id, id, workflowId } = await startQuery(stack, 'select pg_sleep(600)');
      await waitFor(
        async () => (await readStatus(stack.pool, team_id, id))?.status === 'running',
        'the running query',
      );
      await waitUntilWaiting(stack, workflowId);
      await record('background-query-running', workflowId);
      await stack.client.workflow.getHandle(workflowId).cancel();
      await waitFor(async () => {
        const { status } = await stack.client.workflow.getHandle(workflowId).describe();
        return status.name !== 'RUNNING';
      }, 'the cancellation');
      await record('background-query-cancelled', workflowId);
    },
  },
];
