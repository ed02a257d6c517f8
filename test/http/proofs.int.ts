import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { createPolicies } from '../../src/decisions/create_run.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { listProofKeys, signProof, signWithProofKey } from '../../src/http/proofs/proof.ts';
import type { SignedProof } from '../../src/http/proofs/schema.ts';
import { isSignedBy } from '../../src/http/proofs/signature.ts';
import { exportd } from '../cli/command_line.ts';
import { createCommander } from '../decisions/commander.ts';
import { createSimulatedRuns } from '../decisions/simulated_runs.ts';
import { fromSetUp } from '../setup/environment.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
let runs: ReturnType<typeof createSimulatedRuns>;
let id: string;
const policies = createPolicies(readSettings({ DATABASE_URL: 'unused' }));
const day = (number: number): string => `2026-10-${String(number).padStart(2, '0')}T00:00:00.000Z`;

beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
  runs = createSimulatedRuns(
    api.journal,
    createRunRecorder(api.journal),
    createCommander(api.journal, policies),
  );
  id = await api.createExport({ name: 'Clicks', interval: 'day', end_at: day(1) });
  // Days 5 and 6, and 8: the 7th is a hole. The 8th is exported again with fewer rows.
  await backfill(5, 7);
  await backfill(8, 9);
  await publishActive(10);
  const newest = (await runsOf('Completed'))[0]?.id ?? '';
  await api.call('POST', `batch_exports/${id}/runs/${newest}/retry/`, { allow_shrink: true });
  await publishActive(7);
});
afterAll(() => api.close());

const backfill = async (from: number, to: number): Promise<void> => {
  const range = { start_at: day(from), end_at: day(to) };
  expect((await api.call('POST', `batch_exports/${id}/backfill/`, range)).status).toBe(200);
};
const runsOf = async (status: string): Promise<{ id: string }[]> => {
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?status=${status}`);
  return body.results as { id: string }[];
};
async function publishActive(rows: number): Promise<void> {
  for (const { id: run } of await runsOf('Starting'))
    await runs.publish(run, await runs.start(run), `${run}.jsonl`, rows);
}

const prove = async (month: string): Promise<SignedProof> => {
  const { status, text, body } = await api.call('GET', `batch_exports/${id}/proof/?month=${month}`);
  expect([status, text]).toEqual([200, text]);
  return body as unknown as SignedProof;
};

describe('a proof of a month', () => {
  it('states the rows of the files, what is missing, and who allowed rows to go', async () => {
    const { proof } = await prove('2026-10');
    expect(proof).toMatchObject({
      version: 1,
      batch_export: { id, name: 'Clicks', model: 'events', interval: 'day' },
      project: { id: api.projectId, name: 'Shop' },
      timezone: 'UTC',
      start: day(1),
      end: '2026-11-01T00:00:00.000Z',
      totals: { exported: 3, file_rows: 27, files: 3, unequal: 0 },
      allowed: [{ kind: 'fewer_rows', start: day(8), by: 'ada@example.com', rows_before: 10, rows_after: 7 }],
    });
    const exported = proof.entries.filter((entry) => entry.exported > 0);
    expect(exported.map(({ start, file_rows }) => [start, file_rows])).toEqual([
      [day(5), 10],
      [day(6), 10],
      [day(8), 7],
    ]);
    expect(proof.holes).toContainEqual({ start: day(7), end: day(8), reason: expect.any(String) });
    expect((await prove('2026-09')).proof.totals).toMatchObject({ exported: 0, file_rows: 0 });
  });

  it('lists a month of more than a thousand intervals by its days, and counts each', async () => {
    const minutes = await api.createExport({ name: 'Minutes', end_at: day(1) });
    const at = (minute: number) => new Date(Date.parse(day(5)) + minute * 60_000).toISOString();
    const range = { start_at: at(0), end_at: at(1) };
    await api.call('POST', `batch_exports/${minutes}/backfill/`, range);
    const { body } = await api.call('GET', `batch_exports/${minutes}/runs/`);
    const [{ id: run } = { id: '' }] = body.results as { id: string }[];
    await runs.publish(run, await runs.start(run), 'minutes.jsonl', 3);
    await api.database.pool.query(
      `insert into exportd.intervals select (jsonb_populate_record(found, jsonb_build_object(
         'data_interval_start', start, 'data_interval_end', start + interval '1 minute'))).*
       from exportd.intervals found, generate_series($2::timestamptz, $3, '1 minute') start where batch_export_id = $1`,
      [minutes, at(1), at(2_499)],
    );
    const { proof } = (await api.call('GET', `batch_exports/${minutes}/proof/?month=2026-10`))
      .body as unknown as SignedProof;
    expect(proof.totals).toMatchObject({ exported: 2_500, file_rows: 7_500, unequal: 0 });
    const exported = proof.entries.filter((entry) => entry.exported > 0);
    expect(exported.map((entry) => [entry.start, entry.exported, entry.file_rows])).toEqual([
      [day(5), 1_440, 4_320],
      [day(6), 1_060, 3_180],
    ]);
  });

  it('names the field of a month that cannot be proven', async () => {
    for (const month of ['2026-13', 'October', '2999-01', '']) {
      const { status, body } = await api.call('GET', `batch_exports/${id}/proof/?month=${month}`);
      expect([month, status, body.attr]).toEqual([month, 400, 'month']);
    }
  });

  it('is signed: any change breaks the signature, and another key is noticed', async () => {
    const signed = await prove('2026-10');
    expect(isSignedBy(signed.proof, signed.signature)).toBe(true);
    const other = { ...signed.proof, totals: { ...signed.proof.totals, file_rows: 28 } };
    expect(isSignedBy(other, signed.signature)).toBe(false);

    const folder = fromSetUp('EXPORTD_TEST_FOLDER');
    mkdirSync(folder, { recursive: true });
    const write = (name: string, content: unknown): string => {
      const path = join(folder, `${id}-${name}.json`);
      writeFileSync(path, JSON.stringify(content, null, 2));
      return path;
    };
    const file = write('proof', signed);
    const verify = (...args: string[]) => exportd({}, 'proof', 'verify', ...args);
    const { public_key } = signed.signature;
    expect(await verify(file, '--public-key', public_key)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('The signature is valid, and of the given key.'),
    });
    expect(await verify(file, '--public-key', 'AAAA')).toMatchObject({ code: 1 });
    const changed = await verify(write('changed', { ...signed, proof: other }));
    expect(changed).toMatchObject({ code: 1, stderr: expect.stringContaining('was changed') });
    expect(await verify(write('none', {}))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not a proof'),
    });
  });

  it('stays verifiable after the key ring was replaced: the public key is kept', async () => {
    const service = { EXPORTD_BASE_URL: await api.listen(), EXPORTD_API_KEY: api.key };
    const { signature } = await prove('2026-10');
    const { pool } = api.database;
    const rotated = { EXPORTD_ENCRYPTION_KEYS: `new:${randomBytes(32).toString('base64')}` };
    const renewed = await signProof(pool, rotated, (await prove('2026-10')).proof);
    expect(isSignedBy(renewed.proof, renewed.signature)).toBe(true);
    const { body } = await api.call('GET', 'proof_keys/');
    const known = (one: SignedProof['signature'], is_current: boolean) => ({
      key_id: one.key_id,
      public_key: one.public_key,
      first_used_at: expect.any(String),
      is_current,
    });
    expect(body.results).toEqual([known(renewed.signature, false), known(signature, true)]);
    expect(await listProofKeys(pool, rotated)).toEqual([
      known(renewed.signature, true),
      known(signature, false),
    ]);
    const keys = await exportd(service, 'proof', 'keys');
    expect(keys.stdout).toContain(signature.public_key);
    const printed = await exportd(service, 'export', 'proof', id, '--month', '2026-10');
    expect(printed.stdout).toContain('27 rows in 3 files');
    expect(printed.stdout).toMatch(/2026-10-08T00:00:00.000Z .*ada@example\.com +fewer_rows +10 +7/);
  });

  it('signs certificates of erasures too, which the same command checks', async () => {
    const certificate = {
      erasure_id: id,
      project_id: 1,
      status: 'Completed',
      rows_erased: 3,
      objects_removed: 1,
    };
    const signature = await signWithProofKey(
      api.database.pool,
      { EXPORTD_ENCRYPTION_KEYS: `one:${randomBytes(32).toString('base64')}` },
      certificate,
    );
    const check = (name: string, content: object) => {
      const path = join(fromSetUp('EXPORTD_TEST_FOLDER'), `${id}-${name}.json`);
      writeFileSync(path, JSON.stringify(content));
      return exportd({}, 'proof', 'verify', path);
    };
    expect(await check('certificate', { certificate, signature, progress: {} })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /: Completed[^]*3 rows erased, 1 object removed\.[^]*The signature is valid/,
      ),
    });
    const changed = { certificate: { ...certificate, rows_erased: 2 }, signature };
    expect(await check('other', changed)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('was changed'),
    });
    expect(await check('running', { certificate: null, signature: null })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has ended'),
    });
  });
});
