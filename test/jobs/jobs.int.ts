import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Pool } from '../../src/journal/database.ts';
import { readSettings, type Settings } from '../../src/config/settings.ts';
import { differenceDecisionJob, differenceJob } from '../../src/decisions/difference_job.ts';
import { destinationTestJob } from '../../src/destination/destination_test_job.ts';
import { roleCheckJob } from '../../src/destination/role_check_job.ts';
import { beginJob, findJob, finishJob, listJobs, requestJob, withdrawJob } from '../../src/jobs/jobs.ts';
import { webhookTestJob } from '../../src/notifications/webhook_test_job.ts';
import {
  tableCheckJob,
  tableDescriptionJob,
  tableHistoryJob,
  tableRepairJob,
} from '../../src/table_commits/table_jobs.ts';
import { verificationJob } from '../../src/verify/verification_job.ts';
import * as workflows from '../../workflows/index.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();
let service: { readonly pool: Pool; readonly settings: Settings };
beforeAll(() => {
  service = { pool: database.pool, settings: readSettings({ DATABASE_URL: database.url }) };
});

const of = (target: string = randomUUID()) => ({ team_id: 1, user_id: 1, target });
const secrets = { aws_secret_access_key: 'sealed' };
const requestTest = async (): Promise<string> =>
  (await requestJob(service, destinationTestJob, {
    ...of(),
    parameters: { destination_type: 'S3', config: {} },
    secrets,
  })) ?? '';

describe('a job', () => {
  it.each([
    ['an answer', { result: { steps: [] } }, 'completed'],
    ['an error', { error: 'The bucket does not exist.' }, 'failed'],
  ] as const)('has its secrets until %s', async (_, outcome, status) => {
    const id = await requestTest();
    expect(await beginJob(database.pool, id)).toMatchObject({ kind: 'destination_test', secrets });
    await finishJob(database.pool, id, outcome);
    expect(await findJob(database.pool, destinationTestJob, id)).toMatchObject({ status, secrets: {} });
  });

  it('keeps the first answer', async () => {
    const id = await requestTest();
    await finishJob(database.pool, id, { error: 'first' });
    await finishJob(database.pool, id, { error: 'second' });
    expect(await findJob(database.pool, destinationTestJob, id)).toMatchObject({ error: 'first' });
  });

  it('that was withdrawn before a worker began it is not there any more', async () => {
    const id = await requestTest();
    await withdrawJob(database.pool, id);
    expect(await beginJob(database.pool, id)).toBeUndefined();
    expect(await findJob(database.pool, destinationTestJob, id)).toBeUndefined();
  });

  it('is read as one of its kind alone', async () => {
    expect(await findJob(database.pool, webhookTestJob, await requestTest())).toBeUndefined();
  });

  it('replaces the oldest of ten with the same target and parameters', async () => {
    const { target, ...caller } = of();
    const interval = { start: '2026-11-01T10:00:00.000Z', end: '2026-11-01T11:00:00.000Z' };
    const ids: string[] = [];
    for (let count = 0; count < 12; count += 1) {
      const request = { ...caller, target, parameters: { ...interval, deep: false } };
      const id = (await requestJob(service, verificationJob, request)) ?? '';
      await finishJob(database.pool, id, { error: 'none' });
      ids.push(id);
    }
    const listed = await listJobs(database.pool, verificationJob, { target, parameters: interval });
    expect(listed.map(({ id }) => id)).toEqual(ids.slice(2).toReversed());
    const other = { target, parameters: { ...interval, start: '2026-11-01T09:00:00.000Z' } };
    expect(await listJobs(database.pool, verificationJob, other)).toEqual([]);
  });

  it('counts with those of all kinds that share its limit', async () => {
    const request = { ...of(), team_id: 7, parameters: {} };
    const { max } = tableCheckJob.limit ?? { max: 0 };
    for (let count = 0; count < max; count += 1)
      expect(await requestJob(service, tableRepairJob, request)).not.toBeNull();
    expect(await requestJob(service, tableCheckJob, request)).toBeNull();
    expect(await requestJob(service, webhookTestJob, request)).not.toBeNull();
    expect(await requestJob(service, tableCheckJob, { ...request, team_id: 8 })).not.toBeNull();
  });

  it.each([
    destinationTestJob,
    roleCheckJob,
    webhookTestJob,
    verificationJob,
    differenceJob,
    differenceDecisionJob,
    tableDescriptionJob,
    tableHistoryJob,
    tableCheckJob,
    tableRepairJob,
  ])('of the kind $name has the workflow $workflowType', ({ workflowType }) => {
    expect(workflows).toHaveProperty(workflowType, expect.any(Function));
  });
});
