import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { exportBody, openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { version } from '../../src/telemetry/version.ts';
import { fromSetUp } from '../setup/environment.ts';
import { minuteAgo } from '../setup/minutes.ts';
import { sharedBundle } from '../setup/shared_bundle.ts';
import { exportd, exportdProcess } from './command_line.ts';

let api: ApiHarness;
let database: { DATABASE_URL: string };
let service: { EXPORTD_BASE_URL: string; EXPORTD_API_KEY: string };
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
  database = { DATABASE_URL: api.database.url };
  service = { EXPORTD_BASE_URL: await api.listen(), EXPORTD_API_KEY: api.key };
});
afterAll(() => api.close());

/** The JSON that a command prints. */
async function jsonOutputOf(environment: Record<string, string>, ...args: string[]): Promise<unknown> {
  const { code, stdout, stderr } = await exportd(environment, ...args, '--json');
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

describe('exportd', () => {
  it('lists its commands and their options', async () => {
    const [all, one] = await Promise.all([
      exportdProcess({}, '--help'),
      exportd({}, 'key', 'create', '--help'),
    ]);
    expect([all.code, one.code]).toEqual([0, 0]);
    for (const name of [
      'up',
      'demo',
      'server',
      'worker',
      'bundle',
      'migrate',
      'rebuild',
      'projections',
      'doctor',
      'source',
      'status',
      'run',
      'backfill',
      'destination',
      'user',
      'project',
      'key',
      'dashboard',
      'export',
      'verify',
      'webhook',
    ])
      expect(all.stdout).toMatch(new RegExp(`^ {2}${name}\\b`, 'm'));
    expect(one.stdout).toContain('batch_export:write');
  });

  it('prints its version', async () => {
    const { code, stdout } = await exportd({}, '--version');
    expect([code, stdout]).toEqual([0, `${version}\n`]);
  });

  it('writes a workflow bundle', async () => {
    const path = join(fromSetUp('EXPORTD_TEST_FOLDER'), `${randomUUID()}.js`);
    const { code, stdout, stderr } = await exportdProcess({}, 'bundle', path);
    expect([code, stdout, stderr]).toEqual([0, '', '']);
    expect(readFileSync(path, 'utf8') === sharedBundle().code).toBe(true);
    const nowhere = await exportd({}, 'bundle', '/nowhere/workflows.js');
    expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining('/nowhere/workflows.js')]);
  });

  it('creates a user, a project and a key that works until it is revoked', async () => {
    const user = await jsonOutputOf(
      database,
      'user',
      'create',
      '--email',
      'grace@example.com',
      '--first-name',
      'Grace',
    );
    expect(user).toMatchObject({ id: expect.any(Number), email: 'grace@example.com', first_name: 'Grace' });
    const name = `Shop ${randomUUID()}`;
    const project = await jsonOutputOf(
      database,
      'project',
      'create',
      '--name',
      name,
      '--timezone',
      'Europe/Berlin',
      '--week-start-day',
      'monday',
      '--test-account-filters',
      '[{"key": "email"}]',
    );
    expect(project).toMatchObject({ name, timezone: 'Europe/Berlin', week_start_day: 'monday' });
    const { id } = project as { id: number };
    const created = await jsonOutputOf(
      database,
      'key',
      'create',
      '--project',
      String(id),
      '--preset',
      'viewer',
    );
    const key = created as { id: string; key: string };
    expect(Object.keys(key)).toEqual(['id', 'key']);
    const list = () =>
      api.call('GET', `/api/projects/${id}/batch_exports/`, undefined, {
        authorization: `Bearer ${key.key}`,
      });
    expect((await list()).status).toBe(200);
    const listed = JSON.stringify(await jsonOutputOf(database, 'key', 'list'));
    expect(listed).toContain(key.id);
    expect(listed).not.toContain(key.key);
    expect(await jsonOutputOf(database, 'key', 'revoke', key.id)).toEqual({
      id: key.id,
      revoked: true,
      active_descendants: 0,
    });
    expect((await list()).status).toBe(401);
  });

  it('records changes of the database in the audit trail, and lists it', async () => {
    await jsonOutputOf(database, 'user', 'create', '--email', 'trail@example.com');
    const all = await jsonOutputOf(database, 'audit', '--action', 'user.create');
    expect((all as { results: unknown[] }).results[0]).toMatchObject({
      action: 'user.create',
      object: expect.stringMatching(/^users\/\d+$/),
      outcome: 'done',
      object_name: 'trail@example.com',
      project: null,
      changes: [{ field: 'email', before: null, after: 'trail@example.com', secret: false }],
      client: expect.stringMatching(/^exportd .+@/),
    });
    await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/' });
    expect(await jsonOutputOf(service, 'audit', '--limit', '1')).toEqual({
      count: 1,
      results: [expect.objectContaining({ action: 'webhook.create', key: expect.anything() })],
    });
    const printed = await exportd(service, 'audit', '--since', '2026-01-01T00:00:00Z');
    expect([printed.code, printed.stdout]).toEqual([0, expect.stringContaining('webhook.create')]);
  });

  it('prints the audit trail as CSV, of the service and of the database', async () => {
    for (const environment of [service, database]) {
      const { code, stdout, stderr } = await exportd(environment, 'audit', '--csv', '--exclude-action', 'x');
      expect([code, stderr]).toEqual([0, '']);
      const [header, ...lines] = stdout.trimEnd().split('\r\n');
      expect(header).toMatch(/^time,user,api_key,project,action,/);
      expect(lines.some((line) => line.includes('webhook.create'))).toBe(true);
      const one = await exportd(environment, 'audit', '--csv', '--limit', '1');
      expect(one.stdout.trimEnd().split('\r\n')).toHaveLength(2);
      const none = await exportd(environment, 'audit', '--csv', '--until', '2020-01-01T00:00:00Z');
      expect([none.code, none.stdout]).toEqual([0, `${header}\r\n`]);
    }
    expect((await exportd(service, 'audit', '--csv', '--json')).code).toBe(1);
    const wrong = await exportd(service, 'audit', '--csv', '--since', 'yesterday');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('since: Must be an ISO 8601')]);
  });

  it.each(['service', 'database'] as const)(
    'disables and enables a user, and renames a project, with the %s',
    async (place) => {
      const environment = { service, database }[place];
      const email = `leaver-${place}@example.com`;
      const { id } = (await jsonOutputOf(environment, 'user', 'create', '--email', email)) as { id: number };
      const project = String(api.projectId);
      const create = ['key', 'create', '--project', project, '--user', String(id), '--preset', 'editor'];
      const key = (await jsonOutputOf(database, ...create)) as { key: string };
      const status = async () =>
        (await api.call('GET', 'batch_exports/', undefined, { authorization: `Bearer ${key.key}` })).status;
      expect(await status()).toBe(200);
      const disabled = await exportd(environment, 'user', 'disable', String(id));
      expect([disabled.code, disabled.stdout]).toEqual([0, `Disabled ${email}. Keys that ended: 1.\n`]);
      expect(await status()).toBe(401);
      const listed = await exportd(database, 'user', 'list');
      expect(listed.stdout).toMatch(new RegExp(`${email} .* 0 +\\d{4}-\\d\\d-\\d\\dT`));
      const refused = await exportd(database, ...create);
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`User ${id} is disabled.`)]);
      expect((await exportd(environment, 'user', 'enable', String(id))).stdout).toContain('stay revoked');
      expect(await status()).toBe(401);
      expect((await exportd(database, ...create)).code).toBe(0);

      const name = `Shop of the ${place}`;
      const renamed = await exportd(environment, 'project', 'rename', project, name);
      expect([renamed.code, renamed.stdout]).toEqual([0, expect.stringContaining(name)]);
      const trail = await jsonOutputOf(database, 'audit', '--action', 'project.rename', '--limit', '1');
      const changes = [expect.objectContaining({ field: 'name', after: name })];
      const event = { project: { id: api.projectId, name }, object_name: name, changes };
      expect(trail).toMatchObject({ results: [event] });
      await jsonOutputOf(environment, 'project', 'rename', project, 'Shop');
      for (const [command, message] of [
        [['user', 'disable', '4711'], 'There is no user'],
        [['user', 'enable', '4711'], 'There is no user'],
        [['user', 'disable', 'ada'], 'positive whole number'],
        [['project', 'rename', '4711', 'x'], 'There is no project'],
        [['project', 'rename', project, ' '], 'may not be blank'],
      ] as const) {
        const wrong = await exportd(environment, ...command);
        expect([command, wrong.code, wrong.stderr]).toEqual([command, 1, expect.stringContaining(message)]);
      }
      const last = await exportd(environment, 'user', 'disable', String(api.userId));
      expect([last.code, last.stderr]).toEqual([1, expect.stringContaining('is the only user')]);
    },
  );

  it('works on the database with --database, although there is an API key', async () => {
    const bootstrap = { ...database, ...service };
    const key = ['key', 'create', '--project', `${api.projectId}`, '--scopes', 'query:read'];
    expect(await jsonOutputOf(bootstrap, ...key)).toMatchObject({ name: 'Command line' });
    expect(Object.keys((await jsonOutputOf(bootstrap, ...key, '--database')) as object)).toEqual([
      'id',
      'key',
    ]);
    const user = ['user', 'create', '--email', 'hedy@example.com', '--distinct-id', 'x'];
    expect(await exportd(bootstrap, ...user)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--distinct-id is only with the database: omit it, or add --database.'),
    });
    expect((await exportd(bootstrap, ...user, '--database')).code).toBe(0);
  });

  it('says in its help what keys are managed with, and that a project can be named', async () => {
    const key = await exportd({}, 'key', '--help');
    const onOneLine = (text: string) => text.replaceAll(/\s+/g, ' ');
    for (const text of ['HTTP API', 'key:admin', 'create', 'list', 'rotate', 'revoke'])
      expect(onOneLine(key.stdout)).toContain(text);
    const commands = ['status', 'apply', 'export list', 'run list', 'backfill list', 'webhook list', 'audit'];
    for (const command of [...commands, 'destination test', 'key list', 'key rotate', 'key revoke'])
      expect(onOneLine((await exportd({}, ...command.split(' '), '--help')).stdout)).toContain(
        '--project <id> id of the project; needed if the API key has several',
      );
  });

  it('works on the project that is named where the key has several, and lists them where none is', async () => {
    const { id, key } = await api.newKey(api.projectId);
    const { projectId, otherProjectId } = api;
    await api.database.pool.query('update exportd.api_keys set project_ids = $2 where id = $1', [
      id,
      [projectId, otherProjectId],
    ]);
    const wide = { ...service, EXPORTD_API_KEY: key };
    const name = `Only here ${randomUUID()}`;
    await api.createExport({ name });
    for (const command of ['export list', 'status', 'webhook list', 'key list', 'audit', 'export get']) {
      const { code, stdout, stderr } = await exportd(wide, ...command.split(' '));
      expect([command, code, stdout, stderr]).toEqual([
        command,
        1,
        '',
        `exportd: The API key has several projects: ${projectId} (Shop), ${otherProjectId} (Other). Pass --project with the id of one.\n`,
      ]);
    }
    const list = ['export', 'list', '--project'];
    expect((await exportd(wide, ...list, `${projectId}`)).stdout).toContain(name);
    expect((await exportd(wide, ...list, `${otherProjectId}`)).stdout).not.toContain(name);
    const foreign = await exportd(service, ...list, `${otherProjectId}`);
    expect([foreign.code, foreign.stderr]).toEqual([
      1,
      `exportd: The API key gives no access to project ${otherProjectId}. It has: ${projectId} (Shop).\n`,
    ]);
    const both = await jsonOutputOf(
      wide,
      'key',
      'create',
      '--name',
      'Both',
      '--scopes',
      'batch_export:read',
      '--project',
      `${projectId},${otherProjectId}`,
    );
    expect(both).toMatchObject({ projects: [projectId, otherProjectId] });
    const revoke = ['key', 'revoke', (both as { id: string }).id, '--project', `${otherProjectId}`];
    const refused = await exportd(database, ...revoke);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('omit --project')]);
    expect((await exportd(wide, ...revoke)).code).toBe(0);
  });

  // What each command sends and prints: operations.unit.ts.
  it('manages an export', async () => {
    const created = await jsonOutputOf(
      service,
      'export',
      'create',
      // Ends in the past: a minute that passes during the test adds no lag.
      JSON.stringify(exportBody({ name: 'From the CLI', end_at: minuteAgo(0).toISOString() })),
    );
    const { id } = created as { id: string };
    const range = ['--start-at', '2026-11-01T10:00:30Z', '--end-at', '2026-11-01T10:02:00Z'];
    const started = await exportd(service, 'export', 'backfill', id, ...range);
    expect(started.stdout).toMatch(/^Started backfill: [0-9a-f-]{36}$/m);
    const { results } = (await jsonOutputOf(service, 'run', 'list', id)) as { results: { id: string }[] };
    const retry = await exportd(service, 'export', 'retry', id, results[0]?.id ?? '');
    expect([retry.code, retry.stderr]).toEqual([1, expect.stringContaining('is still active')]);
    const failure = { status: 'Failed', latest_error: 'AccessDenied: a test' } as const;
    await endRun(api.journal, quickPolicies(), results[0]?.id ?? '', failure);
    const status = await exportd(service, 'status');
    expect(status.stdout).toMatch(
      new RegExp(`^Service: .*\n[^]*^error +access_denied +${id} +From the CLI `, 'm'),
    );
    expect(await exportd(service, 'export', 'reading', id, '--reader', 'excel')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'Readers of these files: DuckDB, Python, Spark, ClickHouse, Snowflake.',
      ),
    });
    expect(await jsonOutputOf(service, 'export', 'delete', id)).toEqual({
      accepted: true,
      applied: true,
      location: null,
    });
  });

  it('prints the secret of a webhook once', async () => {
    const created = await jsonOutputOf(service, 'webhook', 'create', '--url', 'http://127.0.0.1:1/hook');
    const { id, secret } = created as { id: string; secret: string };
    expect((await exportd(service, 'webhook', 'list')).stdout).not.toContain(secret);
    const changed = (await jsonOutputOf(service, 'webhook', 'update', id, '--rotate-secret')) as {
      secret: string;
    };
    expect(changed.secret).toMatch(/^whsec_/);
    expect(changed.secret).not.toBe(secret);
    expect(await exportd(service, 'webhook', 'update', id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Nothing to change'),
    });
  });

  it('rebuilds the read models and applies no migration', async () => {
    expect(await jsonOutputOf(database, 'rebuild')).toEqual({ events: expect.any(Number) });
    expect(await jsonOutputOf(database, 'migrate')).toEqual({ applied: [] });
  });

  it.each([
    ['without a database', {}, ['user', 'list'], /set DATABASE_URL/],
    [
      'with an unknown setting',
      { DATABASE_URL: 'x', EXPORTD_COLOUR: '1' },
      ['user', 'list'],
      /EXPORTD_COLOUR/,
    ],
    ['with an invalid setting', { DATABASE_URL: 'x', EXPORTD_PORT: 'http' }, ['server'], /EXPORTD_PORT/],
    [
      'without encryption keys',
      { DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      ['server'],
      /EXPORTD_ENCRYPTION_KEYS/,
    ],
    [
      'with a base URL whose path is its own',
      {
        DATABASE_URL: 'postgres://127.0.0.1:1/x',
        EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32, 1).toString('base64')}`,
        EXPORTD_LOG_LEVEL: 'error',
        EXPORTD_BASE_URL: 'https://host/api/projects/',
      },
      ['server'],
      /exportd has the path \/api\/projects itself\. Choose another/,
    ],
    [
      'with a missing workflow bundle',
      {
        DATABASE_URL: 'postgres://127.0.0.1:1/x',
        EXPORTD_ENCRYPTION_KEYS: `main:${Buffer.alloc(32, 1).toString('base64')}`,
        EXPORTD_WORKFLOW_BUNDLE: '/nowhere/workflows.js',
      },
      ['worker'],
      /EXPORTD_WORKFLOW_BUNDLE: .* exportd bundle/,
    ],
    ['without a service', {}, ['export', 'list'], /EXPORTD_BASE_URL/],
    [
      'with an unreachable service',
      { EXPORTD_BASE_URL: 'http://127.0.0.1:1', EXPORTD_API_KEY: 'x' },
      ['export', 'list'],
      /Cannot connect/,
    ],
    [
      'with an unreachable database',
      { DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      ['key', 'list'],
      /Cannot connect/,
    ],
  ])('prints a one-line error %s', async (_, environment: Record<string, string>, args, words) => {
    // A server and a worker that have begun to start must also end.
    const run = 'EXPORTD_ENCRYPTION_KEYS' in environment ? exportdProcess : exportd;
    const { code, stdout, stderr } = await run(environment, ...args);
    expect([code, stdout, stderr.trim().split('\n').length]).toEqual([1, '', 1]);
    expect(stderr).toMatch(words);
  });

  it('reports failed checks', async () => {
    const { code, stdout, stderr } = await exportd(
      { ...database, TEMPORAL_ADDRESS: '127.0.0.1:1' },
      'doctor',
      '--json',
    );
    expect([code, stderr]).toEqual([
      1,
      'exportd: Failed checks: encryption keys, stored secrets, Temporal.\n',
    ]);
    const findings = JSON.parse(stdout) as { check: string; ok: boolean; detail: string }[];
    expect(findings.filter(({ ok }) => ok).map(({ check }) => check)).toEqual([
      'installation',
      'server',
      'control database',
      'migrations',
      'source',
      'query role',
      'prefixes',
      'conditions',
    ]);
    const { host, pathname } = new URL(database.DATABASE_URL);
    expect(findings.find(({ check }) => check === 'control database')?.detail).toContain(host + pathname);
  });

  it('works on one installation: a database beside the running demo is refused with both names', async () => {
    const folder = join(fromSetUp('EXPORTD_TEST_FOLDER'), randomUUID());
    mkdirSync(folder);
    const { host, pathname } = new URL(database.DATABASE_URL);
    const demo = (worker_pid: number) =>
      writeFileSync(
        join(folder, 'demo.json'),
        JSON.stringify({
          base_url: service.EXPORTD_BASE_URL,
          api_key: service.EXPORTD_API_KEY,
          database_url: `postgres://exportd@${host}/demo`,
          worker_pid,
        }),
      );
    demo(process.pid);
    const environment = { ...database, EXPORTD_DATA_DIR: folder };
    for (const args of [
      ['project', 'list'],
      ['key', 'list'],
      ['export', 'list'],
    ]) {
      const { code, stderr } = await exportd(environment, ...args);
      expect([code, stderr]).toEqual([1, expect.stringContaining(host + pathname)]);
      expect(stderr).toContain(`${host}/demo`);
    }
    const named = { ...environment, EXPORTD_BASE_URL: service.EXPORTD_BASE_URL };
    const { code, stderr } = await exportd(named, 'project', 'list', '--verbose');
    expect([code, stderr.split('\n')]).toEqual([
      0,
      expect.arrayContaining([`server: ${service.EXPORTD_BASE_URL}`, `control database: ${host}${pathname}`]),
    ]);
    // The demo has ended without deleting its file.
    demo(2 ** 22);
    expect((await exportd(environment, 'project', 'list')).code).toBe(0);
  });

  it('prints the errors of the service and the database', async () => {
    const id = randomUUID();
    const listed = '"exportd export list" lists what there is.\n';
    const missingInterval = `There is no interval "nonsense" of a batch export "${id}". "exportd export intervals ${id}" lists what there is.\n`;
    for (const [command, sentence] of [
      [['export', 'show', id], `There is no batch export "${id}" in the project. ${listed}`],
      [['why', 'nonsense'], `There is no batch export "nonsense" in the project. ${listed}`],
      [['export', 'pause', id], `There is no batch export "${id}" in the project. ${listed}`],
      [['run', 'list', id], `There is no batch export "${id}" in the project. ${listed}`],
      [
        ['run', 'show', id, 'r'],
        `There is no run "r" of a batch export "${id}". "exportd run list ${id}" lists what there is.\n`,
      ],
      [['export', 'interval', id, 'nonsense'], missingInterval],
      [['export', 'difference', id, 'nonsense'], missingInterval],
      [['export', 'find', id, 'nonsense', id], missingInterval],
      [
        ['webhook', 'delete', id],
        `There is no webhook "${id}" in the project. "exportd webhook list" lists what there is.\n`,
      ],
      [
        ['key', 'revoke', id],
        `There is no key "${id}" in the project. "exportd key list" lists what there is.\n`,
      ],
    ] as const) {
      const missing = await exportd(service, ...command);
      expect([command, missing.code, missing.stderr]).toEqual([command, 1, `exportd: ${sentence}`]);
    }
    const scope = await exportd(database, 'key', 'create', '--project', '1', '--scopes', 'everything');
    expect([scope.code, scope.stderr]).toEqual([1, expect.stringContaining('Unknown scope "everything".')]);
    const neither = await exportd(database, 'key', 'create', '--project', '1');
    expect([neither.code, neither.stderr]).toEqual([
      1,
      expect.stringContaining('--preset viewer|editor|owner'),
    ]);
    const twice = ['--preset', 'viewer', '--scopes', 'query:read'];
    expect((await exportd(database, 'key', 'create', '--project', '1', ...twice)).code).toBe(1);
    expect((await exportd(database, 'key', 'create', '--project', '1', '--preset', 'god')).code).toBe(1);
  });
});
