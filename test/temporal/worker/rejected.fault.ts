import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { compileCacheOf } from '../../../src/local_stack/compile_cache.ts';
import { createTestDatabase, type TestDatabase } from '../../setup/database.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { v8OfTests } from '../../setup/v8_options.ts';
import { createTemporalProxy, permissionDenied, type TemporalProxy } from '../../setup/temporal_proxy.ts';
import { waitFor } from '../../setup/wait_for.ts';

const main = join(import.meta.dirname, '../../../src/cli/main.ts');

let database: TestDatabase;
let proxy: TemporalProxy;
let worker: ChildProcess;
let output = '';

interface LogLine {
  readonly msg: string;
  readonly operator_fault?: string;
}

const logLines = (): LogLine[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as LogLine);
const faultLines = (type: string) => logLines().filter(({ operator_fault }) => operator_fault === type);
const hasLine = (message: string) => logLines().some(({ msg }) => msg === message);
const openFaults = async () => {
  const { rows } = await database.pool.query<{ type: string }>(
    'select type from exportd.operator_faults where resolved_at is null order by type',
  );
  return rows.map(({ type }) => type);
};
/** Waits until the worker has tried again a few times. */
const waitForAttempts = async () => {
  const before = proxy.calls.length;
  await waitFor(() => proxy.calls.length > before + 2, 'further attempts of the worker');
};

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await createTemporalProxy(fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'));
  proxy.check(permissionDenied);
  worker = spawn(process.execPath, [...v8OfTests, main, 'worker'], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compileCacheOf('worker'),
      EXPORTD_WORKFLOW_BUNDLE: fromSetUp('EXPORTD_WORKFLOW_BUNDLE'),
      EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32, 1).toString('base64')}`,
      EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
      EXPORTD_RECONCILE_INTERVAL: '500ms',
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: proxy.address,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  worker.stderr?.on('data', (text: Buffer) => (output += text.toString()));
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await proxy.close();
  await database.drop();
});

describe('a worker that Temporal rejects', () => {
  it.each([
    [
      7,
      'Request unauthorized.',
      'TemporalPermissionDenied',
      /^Temporal denies exportd access to its namespace/,
    ],
    [16, 'Unauthenticated.', 'TemporalUnauthenticated', /^Temporal rejects exportd's credentials/],
  ])('with code %s at its start waits, and says why once', async (code, text, type, message) => {
    proxy.check(() => ({ code, message: text }));
    await waitFor(
      () => faultLines(type).length > 0,
      () => `the fault ${type} in ${output}`,
    );
    await waitForAttempts();
    expect(faultLines(type)).toEqual([expect.objectContaining({ msg: expect.stringMatching(message) })]);
    expect(await openFaults()).toContain(type);
    expect(worker.exitCode).toBeNull();
  });

  it('starts when Temporal accepts it', async () => {
    proxy.check();
    await waitFor(
      () => hasLine('The worker is running.'),
      () => `the start of the worker in ${output}`,
    );
    expect(hasLine('Temporal works again.')).toBe(true);
  });

  it('while it runs says why, and polls again after that', async () => {
    const known = faultLines('TemporalPermissionDenied').length;
    proxy.check(permissionDenied);
    proxy.disconnect();
    await waitFor(() => faultLines('TemporalPermissionDenied').length > known, 'the fault in the log');
    await waitForAttempts();
    expect(faultLines('TemporalPermissionDenied')).toHaveLength(known + 1);
    proxy.check();
    const since = proxy.calls.length;
    await waitFor(
      () => proxy.calls.slice(since).some(({ path }) => path.endsWith('PollWorkflowTaskQueue')),
      'a poll of the worker',
    );
    expect(worker.exitCode).toBeNull();
  });
});
