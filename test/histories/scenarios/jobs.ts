import { randomUUID } from 'node:crypto';
import { workflowIds } from '../../../src/contract/workflow_ids.ts';
import { destinationTestJob } from '../../../src/destination/destination_test_job.ts';
import { roleCheckJob } from '../../../src/destination/role_check_job.ts';
import { findJob, type JobKind, requestJob } from '../../../src/jobs/jobs.ts';
import { webhookTestJob } from '../../../src/notifications/webhook_test_job.ts';
import {
  tableCheckJob,
  tableDescriptionJob,
  tableHistoryJob,
  tableRepairJob,
} from '../../../src/table_commits/table_jobs.ts';
import { createJobClient } from '../../../src/temporal/clients/job_client.ts';
import { verificationJob } from '../../../src/verify/verification_job.ts';
import { hourAgo } from '../../setup/hours.ts';
import type { ControlPlaneHarness } from '../../temporal/control_plane_harness.ts';
import type { Scenario } from './scenario.ts';

/** Has a worker do a job whose target does not exist. @returns the id of its workflow */
async function ask<Parameters extends object, Result extends object>(
  stack: ControlPlaneHarness,
  kind: JobKind<Parameters, Result>,
  parameters: Parameters,
): Promise<string> {
  const team_id = 1;
  const id = (await requestJob(stack, kind, { team_id, user_id: 1, target: randomUUID(), parameters })) ?? '';
  await createJobClient(stack.client, stack.pool, stack.settings).start(kind, { id, team_id });
  const workflowId = workflowIds(stack.settings).job(kind.workflowType, id);
  await stack.client.workflow.getHandle(workflowId).result();
  const status = (await findJob(stack.pool, kind, id))?.status ?? 'gone';
  if (!['completed', 'failed'].includes(status)) throw new Error(`The job ${kind.name} is ${status}.`);
  return workflowId;
}

export const jobScenarios: readonly Scenario[] = [
  {
    histories: ['job-verification', 'job-table-repair', 'job-destination-test'],
    play: async (stack, record) => {
      const [start, end] = [hourAgo(1).toISOString(), hourAgo(0).toISOString()];
      await record('job-verification', await ask(stack, verificationJob, { start, end, deep: false }));
      await record('job-table-repair', await ask(stack, tableRepairJob, {}));
      await record(
        'job-destination-test',
        await ask(stack, destinationTestJob, { destination_type: 'S3', config: {} }),
      );
      // Their workflows are the same, by other names.
      await ask(stack, roleCheckJob, { destination_type: 'S3', config: {} });
      await ask(stack, tableCheckJob, {});
      await ask(stack, tableDescriptionJob, {});
      await ask(stack, tableHistoryJob, { before: null, limit: 1 });
      await ask(stack, webhookTestJob, {});
    },
  },
];
