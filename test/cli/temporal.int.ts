import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { msToTs } from '@temporalio/common/lib/time.js';
import { readSettings } from '../../src/config/settings.ts';
import { createClient, type ClientConnection } from '../../src/temporal/connections.ts';
import { ensureSearchAttributes, searchAttributeNames } from '../../src/temporal/search_attributes.ts';
import { fromSetUp } from '../setup/environment.ts';
import { createTemporalProxy, permissionDenied, type TemporalProxy } from '../setup/temporal_proxy.ts';
import { waitFor } from '../setup/wait_for.ts';
import { exportd } from './command_line.ts';

const namespace = `setup-${randomUUID()}`;
const database = { DATABASE_URL: 'postgres://127.0.0.1:1/unused' };

let proxy: TemporalProxy;
let temporal: ClientConnection;
let environment: Record<string, string>;

beforeAll(async () => {
  proxy = await createTemporalProxy(fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'));
  environment = { ...database, TEMPORAL_ADDRESS: proxy.address, TEMPORAL_NAMESPACE: namespace };
  temporal = await createClient(readSettings(environment));
  await temporal.client.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs('1d'),
  });
  // The server reads its namespaces from time to time.
  await waitFor(
    () =>
      temporal.client.workflow.count().then(
        () => true,
        () => false,
      ),
    'the namespace',
  );
});
afterAll(async () => {
  await temporal.close();
  await proxy.close();
});

/** Whether a worker could start. */
const ensure = (EXPORTD_REGISTER_SEARCH_ATTRIBUTES: boolean) =>
  ensureSearchAttributes(temporal, { EXPORTD_REGISTER_SEARCH_ATTRIBUTES }, AbortSignal.timeout(60_000));

describe('exportd temporal setup', () => {
  it('prints what to register without a connection', async () => {
    const offline = { ...environment, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const { code, stdout } = await exportd(offline, 'temporal', 'setup', '--print');
    expect(code).toBe(0);
    expect(stdout).toContain(`temporal operator search-attribute create --namespace '${namespace}'`);
    for (const name of searchAttributeNames) expect(stdout).toContain(`--name ${name} --type Keyword`);
    expect(stdout).toContain('matching.enableFairness:');
    const json = await exportd(offline, 'temporal', 'setup', '--print', '--json');
    expect(JSON.parse(json.stdout)).toMatchObject({
      namespace,
      search_attributes: searchAttributeNames.map((name) => ({ name, type: 'Keyword' })),
    });
  });

  it('needs the permissions of an operator, unlike a worker with all attributes', async () => {
    proxy.check((call) => (call.path.includes('OperatorService') ? permissionDenied(call) : undefined));
    const denied = await exportd(environment, 'temporal', 'setup');
    expect([denied.code, denied.stdout]).toEqual([1, '']);
    expect(denied.stderr).toContain('needs the permissions of an operator');
    await expect(ensure(true)).rejects.toThrow('Temporal does not permit exportd to register them');
    await expect(ensure(false)).rejects.toThrow('EXPORTD_REGISTER_SEARCH_ATTRIBUTES is false');

    proxy.check();
    const done = await exportd(environment, 'temporal', 'setup', '--json');
    expect(JSON.parse(done.stdout)).toEqual({ namespace, registered: [...searchAttributeNames] });
    const again = await exportd(environment, 'temporal', 'setup');
    expect(again.stdout).toContain(`Namespace ${namespace} has all search attributes`);

    proxy.check((call) => (call.path.includes('OperatorService') ? permissionDenied(call) : undefined));
    await expect(ensure(true)).resolves.toBeUndefined();
    await expect(ensure(false)).resolves.toBeUndefined();
  });
});

it('doctor names the permission that is missing, and how it connects', async () => {
  proxy.check(permissionDenied);
  const { stdout } = await exportd(
    { ...environment, TEMPORAL_API_KEY: 'x', TEMPORAL_TLS: 'false' },
    'doctor',
    '--json',
  );
  const checks = JSON.parse(stdout) as { check: string; detail: string }[];
  expect(checks.find(({ check }) => check === 'Temporal')?.detail).toMatch(
    new RegExp(`^${proxy.address}, namespace ${namespace}, API key: Temporal denies exportd access`),
  );
});
