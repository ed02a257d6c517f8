import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { workflowIds } from '../../src/contract/workflow_ids.ts';
import { startStack, type ApiResponse, type Stack } from './stack.ts';

const canary = `canary${randomBytes(18).toString('hex')}`;
let stack: Stack;
beforeAll(async () => {
  stack = await startStack('destination-test', { EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
});
afterAll(() => stack.stop());

const statuses = ({ body }: ApiResponse) =>
  (body.steps as { result: { status: string } }[]).map(({ result }) => result.status);
const config = (more: object = {}) => ({
  bucket_name: stack.bucket.bucket,
  region: 'us-east-1',
  prefix: 'tested',
  endpoint_url: stack.bucket.endpoint,
  aws_access_key_id: stack.bucket.accessKeyId,
  aws_secret_access_key: stack.bucket.secretAccessKey,
  ...more,
});

/** The histories of destination tests, as text. */
async function historiesOfTests(ids: readonly string[]): Promise<string> {
  const connection = await Connection.connect({ address: stack.temporalAddress });
  const client = new Client({ connection });
  const histories = await Promise.all(
    ids.map((id) =>
      client.workflow
        .getHandle(workflowIds(stack.settings).job('batchExportDestinationTest', id))
        .fetchHistory(),
    ),
  );
  await connection.close();
  return JSON.stringify(histories, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : value,
  );
}

/** Records the ids of destination tests, whose rows are deleted when they end. */
async function recordTests(): Promise<() => Promise<string[]>> {
  await stack.pool.query(
    `create table public.seen_tests (id uuid, row text);
     create function public.see_test() returns trigger language plpgsql as $$
       begin insert into public.seen_tests values (new.id, new::text); return new; end $$;
     create trigger see_test after insert on exportd.jobs for each row execute function public.see_test()`,
  );
  return async () => {
    const { rows } = await stack.pool.query<{ id: string; row: string }>('select * from public.seen_tests');
    expect(rows.length).toBeGreaterThan(0);
    for (const { row } of rows) expect(row).not.toContain(canary);
    return rows.map(({ id }) => id);
  };
}

describe('the test of a destination', () => {
  it('runs on a worker, and no history, response or table has a secret or the config', async () => {
    const recordedTestIds = await recordTests();
    const passing = await stack.call('POST', '/batch_exports/test/', {
      destination: { type: 'S3', config: config() },
    });
    expect([passing.status, statuses(passing)]).toEqual([200, Array<string>(7).fill('Passed')]);
    const id = await stack.createExport({}, { aws_secret_access_key: canary });
    const failing = await stack.call('POST', `/batch_exports/${id}/test/`);
    expect([failing.status, statuses(failing)]).toEqual([
      200,
      ['Failed', ...Array<string>(6).fill('Skipped')],
    ]);
    const fixed = await stack.call('POST', `/batch_exports/${id}/test/`, {
      destination: { config: { aws_secret_access_key: stack.bucket.secretAccessKey } },
    });
    expect(statuses(fixed)).toEqual(Array<string>(7).fill('Passed'));
    const histories = await historiesOfTests(await recordedTestIds());
    expect(histories).toContain('batchExportDestinationTest');
    for (const text of [canary, stack.bucket.bucket, stack.bucket.accessKeyId, stack.bucket.secretAccessKey])
      expect(histories).not.toContain(text);
    expect(failing.text).not.toContain(canary);
  });

  it('reports why a server cannot be reached', async () => {
    const response = await stack.call('POST', '/batch_exports/test/', {
      destination: { type: 'S3', config: config({ endpoint_url: 'http://127.0.0.1:1' }) },
    });
    expect(response.body.steps).toContainEqual(
      expect.objectContaining({
        name: 'bucket',
        result: { status: 'Failed', message: expect.stringContaining('ECONNREFUSED') },
      }),
    );
  });

  it('is 503 while no worker runs', async () => {
    const withoutWorker = await startStack(
      'destination-test-without-worker',
      { EXPORTD_DESTINATION_TEST_TIMEOUT: '100ms' },
      { worker: false },
    );
    const response = await withoutWorker.call('POST', '/batch_exports/test/', {
      destination: { type: 'S3', config: config() },
    });
    const { rows } = await withoutWorker.pool.query('select from exportd.jobs');
    await withoutWorker.stop();
    expect([response.status, response.body.code]).toEqual([503, 'not_tested']);
    expect(rows).toHaveLength(0);
  });
});
