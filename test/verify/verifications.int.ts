import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createVerificationActivities } from '../../activities/verification.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { findVerification, listVerifications, requestVerification } from '../../src/verify/verifications.ts';
import { createVerifyHarness, hours, teamId, type Exported, type VerifyHarness } from './verify_harness.ts';

let harness: VerifyHarness;
let exported: Exported;
let verifyInterval: (id: string) => Promise<void>;

beforeAll(async () => {
  harness = await createVerifyHarness(20);
  exported = await harness.exportHours();
  const { keyRing, settings, database } = harness;
  const activities = createVerificationActivities({
    pool: database.pool,
    keyRing,
    settings: { ...settings, SOURCE_DATABASE_URL: database.url },
    logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
    context: () => ({ heartbeat: () => undefined, cancellationSignal: new AbortController().signal }),
  });
  verifyInterval = (verification_id) => activities.verifyInterval({ verification_id });
});
afterAll(() => harness.close());

const hourOf = (index: number) => hours[index] ?? { start: '', end: '' };

const request = (hour: number, more: { batch_export_id?: string; team_id?: number } = {}) =>
  requestVerification(harness.database.pool, {
    batch_export_id: exported.batchExportId,
    team_id: teamId,
    user_id: 1,
    deep: true,
    ...hourOf(hour),
    ...more,
  });

/** Requests a verification, runs it, and returns it. */
async function verified(hour: number, more: { batch_export_id?: string } = {}) {
  const id = (await request(hour, more)) ?? '';
  expect((await findVerification(harness.database.pool, id))?.status).toBe('pending');
  await verifyInterval(id);
  return findVerification(harness.database.pool, id);
}

describe('a verification', () => {
  it('compares the files of one interval with the source', async () => {
    expect(await verified(0)).toMatchObject({
      ...hourOf(0),
      status: 'completed',
      error: null,
      report: { ok: true, deep: true, findings: [], totals: { manifests: 1, files: 1, rows: 20 } },
    });
  });

  it('names the rows that are missing', async () => {
    await exported.rewrite(1, (lines) => lines.slice(1));
    const found = await verified(1);
    expect(found).toMatchObject({ status: 'completed', report: { ok: false, totals: { missing: 1 } } });
    const listed = await listVerifications(harness.database.pool, exported.batchExportId, hourOf(1));
    expect(listed).toEqual([found]);
  });

  it('fails with a message, and not its activity', async () => {
    expect(await verified(0, { batch_export_id: randomUUID() })).toMatchObject({
      status: 'failed',
      report: null,
      error: expect.stringContaining('does not exist'),
    });
  });

  it('runs once', async () => {
    const id = (await request(0)) ?? '';
    await verifyInterval(id);
    const first = await findVerification(harness.database.pool, id);
    await verifyInterval(id);
    expect(await findVerification(harness.database.pool, id)).toEqual(first);
  });

  it('is requested once by concurrent requests', async () => {
    const requests = await Promise.all(Array.from({ length: 8 }, () => request(0)));
    const ids = requests.filter((id) => id !== null);
    expect(ids).toHaveLength(1);
    await verifyInterval(ids[0] ?? '');
  });

  it('is not requested while one of the project, or several of the deployment, run', async () => {
    const ids = [await request(2), await request(2, { team_id: 2 }), await request(2, { team_id: 3 })];
    expect(ids).not.toContain(null);
    expect(await request(2)).toBeNull();
    ids.push(await request(2, { team_id: 4 }));
    expect(await request(2, { team_id: 5 })).toBeNull();
    for (const id of ids) await verifyInterval(id ?? '');
    expect(await request(2, { team_id: 5 })).not.toBeNull();
  });
});
