import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { deleteEndedSessions, deleteExpiredAuditEvents } from '../../src/journal/audit.ts';
import { minutesAgo } from '../decisions/commander.ts';
import { openApiHarness, plantedSecrets, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true', EXPORTD_WEBHOOK_TIMEOUT: '100ms' });
});
afterAll(() => api.close());

interface AuditEvent {
  readonly id: string;
  readonly action: string;
  readonly object: string | null;
  readonly object_name: string | null;
  readonly project: { readonly id: number; readonly name: string } | null;
  readonly outcome: string;
  readonly status: number | null;
  readonly detail: string | null;
  readonly changes: readonly Change[];
  readonly user: { readonly email: string } | null;
  readonly key: { readonly id: string; readonly prefix: string } | null;
  readonly address: string | null;
  readonly client: string | null;
}

const read = async (query = ''): Promise<readonly AuditEvent[]> =>
  (await api.call('GET', `audit/${query}`)).body.results as readonly AuditEvent[];

/** Every event, as an operator reads them. */
const readAll = async (where: string): Promise<readonly Record<string, unknown>[]> =>
  (
    await api.database.pool.query<Record<string, unknown>>(
      `select * from exportd.audit_events where ${where} order by id`,
    )
  ).rows;

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

interface Change {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly secret: boolean;
}

type Operation = readonly [
  action: string,
  method: 'POST' | 'PATCH' | 'DELETE',
  path: string,
  body: object | undefined,
  object: string,
];

describe('the trail', () => {
  it('has who did what on which object, for every kind of change', async () => {
    const id = await api.createExport();
    const range = { start_at: minutesAgo(3), end_at: minutesAgo(1) };
    const backfill = (await api.call('POST', `batch_exports/${id}/backfills/`, range)).body.id as string;
    const [run] = (await api.call('GET', `batch_exports/${id}/runs/`)).body.results as { id: string }[];
    const runPath = `batch_exports/${id}/runs/${String(run?.id)}`;
    const backfillPath = `batch_exports/${id}/backfills/${backfill}`;
    const webhook = (await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/' })).body.id as string;
    const keyBody = { name: 'CI', scopes: ['query:read'] };
    const key = (await api.call('POST', 'keys/', keyBody)).body.id as string;
    const query = { kind: 'DialectQuery', query: 'select 1' };
    const changes: readonly Operation[] = [
      ['batch_export.update', 'PATCH', `batch_exports/${id}/`, { name: 'Renamed' }, `batch_exports/${id}`],
      ['batch_export.pause', 'POST', `batch_exports/${id}/pause/`, {}, `batch_exports/${id}`],
      ['batch_export.unpause', 'POST', `batch_exports/${id}/unpause/`, {}, `batch_exports/${id}`],
      ['batch_export.test', 'POST', `batch_exports/${id}/test/`, {}, `batch_exports/${id}`],
      ['batch_export.retry_failed', 'POST', 'batch_exports/retry_failed/', {}, 'batch_exports'],
      ['run.cancel', 'POST', `${runPath}/cancel/`, {}, runPath],
      ['run.retry', 'POST', `${runPath}/retry/`, {}, runPath],
      ['backfill.pause', 'POST', `${backfillPath}/pause/`, {}, backfillPath],
      ['backfill.unpause', 'POST', `${backfillPath}/unpause/`, {}, backfillPath],
      ['backfill.cancel', 'POST', `${backfillPath}/cancel/`, {}, backfillPath],
      ['webhook.update', 'PATCH', `webhooks/${webhook}/`, { enabled: false }, `webhooks/${webhook}`],
      ['webhook.test', 'POST', `webhooks/${webhook}/test/`, {}, `webhooks/${webhook}`],
      ['webhook.delete', 'DELETE', `webhooks/${webhook}/`, undefined, `webhooks/${webhook}`],
      ['query.run', 'POST', 'query/', { query, client_query_id: 'mine' }, 'query/mine'],
      ['query.cancel', 'DELETE', 'query/mine/', undefined, 'query/mine'],
      ['key.revoke', 'DELETE', `keys/${key}/`, undefined, `keys/${key}`],
      ['batch_export.delete', 'DELETE', `batch_exports/${id}/`, undefined, `batch_exports/${id}`],
    ];
    for (const [action, method, path, body] of changes) {
      const { status } = await api.call(method, path, body, { 'user-agent': 'curl/8' });
      expect([action, status < 300]).toEqual([action, true]);
    }
    const events = await read('?limit=1000');
    const [{ id: ownKey } = { id: '' }] = (
      await api.database.pool.query<{ id: string }>(
        'select id from exportd.api_keys order by created_at limit 1',
      )
    ).rows;
    for (const [action, , , , object] of changes)
      expect(events).toContainEqual(
        expect.objectContaining({
          action,
          object,
          outcome: 'done',
          user: { id: api.userId, email: 'ada@example.com' },
          key: { id: ownKey, name: expect.any(String), prefix: api.key.slice(0, 8) },
          address: '127.0.0.1',
          client: 'curl/8',
        }),
      );
    const created = ['batch_export.create', 'backfill.create', 'webhook.create', 'key.create'];
    const objects = [`batch_exports/${id}`, backfillPath, `webhooks/${webhook}`, `keys/${key}`];
    expect(created.map((action) => events.find((event) => event.action === action)?.object)).toEqual(objects);
  });

  it('has nothing of reads, of checks, of what was invalid and of what was refused', async () => {
    const narrow = await api.newKey(api.projectId, ['query:read']);
    const other = await api.newKey(api.otherProjectId);
    const before = await readAll('true');
    await api.call('GET', 'batch_exports/', undefined, bearer('exk_no'));
    await api.call('POST', 'batch_exports/retry_failed/', {}, bearer(narrow.key));
    await api.call('POST', 'batch_exports/retry_failed/', {}, bearer(other.key));
    await api.call('GET', 'batch_exports/');
    await api.call('GET', 'keys/');
    await api.call('POST', 'batch_exports/', {});
    await api.call('POST', 'batch_exports/check/', {});
    await api.call('POST', 'query/check_auth_for_async/');
    await api.call('DELETE', 'webhooks/5b0d6a4f-58a5-4b7f-9f0e-1c8f6f3d6d3e/');
    expect(await readAll('true')).toEqual(before);
  });

  it('holds no secret of a body', async () => {
    const secret = 'SECRETTOKEN';
    await api.call('POST', 'webhooks/', { url: `https://hooks.example.com/${secret}` });
    await api.call('POST', '/console/session', { key: secret }, { 'x-exportd-console': '1' });
    await api.call('GET', `batch_exports/?key=${secret}`, undefined, { authorization: '' });
    expect(JSON.stringify(await readAll('true'))).not.toContain(secret);
  });

  it('has each field that was changed, before and after, and of secrets their names alone', async () => {
    const id = await api.createExport({ paused: true });
    const rotated = 'another/secret+of+the+bucket';
    await api.call('PATCH', `batch_exports/${id.toUpperCase()}/`, {
      name: 'Renamed',
      paused: false,
      destination: { type: 'S3', config: { file_format: 'Parquet', compression: 'zstd' } },
    });
    await api.call('PATCH', `batch_exports/${id}/`, {
      destination: { type: 'S3', config: { ...plantedSecrets, aws_secret_access_key: rotated } },
    });
    await api.call('PATCH', `batch_exports/${id}/`, { name: 'Renamed' });
    const trail = await read(`?object=batch_exports/${id}`);
    expect(trail.map(({ action, changes }) => [action, changes])).toEqual([
      ['batch_export.update', []],
      [
        'batch_export.update',
        [
          {
            field: 'destination.config.aws_secret_access_key',
            before: null,
            after: null,
            secret: true,
          },
        ],
      ],
      [
        'batch_export.update',
        [
          { field: 'name', before: 'Events to S3', after: 'Renamed', secret: false },
          { field: 'paused', before: true, after: false, secret: false },
          {
            field: 'destination.config.file_format',
            before: 'JSONLines',
            after: 'Parquet',
            secret: false,
          },
          { field: 'destination.config.compression', before: null, after: 'zstd', secret: false },
        ],
      ],
      ['batch_export.create', expect.any(Array)],
    ]);
    expect(trail.map(({ object_name, project }) => [object_name, project])).toEqual(
      trail.map(() => ['Renamed', { id: api.projectId, name: 'Shop' }]),
    );
    const created = trail.at(-1)?.changes;
    expect(created).toContainEqual({ field: 'paused', before: null, after: true, secret: false });
    expect(created).toContainEqual({
      field: 'destination.config.bucket_name',
      before: null,
      after: 'bucket',
      secret: false,
    });
    const { body } = await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/' });
    const webhook = `webhooks/${String(body.id)}`;
    await api.call('PATCH', `${webhook}/`, {
      enabled: false,
      format: 'json',
      url: 'http://127.0.0.1:9/token',
    });
    expect((await read(`?object=${webhook}`))[0]?.changes).toEqual([
      { field: 'enabled', before: true, after: false, secret: false },
      { field: 'url', before: null, after: null, secret: true },
    ]);
    const text = JSON.stringify(await readAll('true'));
    for (const secret of [...Object.values(plantedSecrets), rotated, '/token'])
      expect(text).not.toContain(secret);
  });

  it('says what a request asked for, a key grants and a user lost', async () => {
    const newest = async () => {
      const [event] = await read('?limit=1');
      return [event?.action, event?.object_name, event?.changes.map(({ field, after }) => [field, after])];
    };
    const id = await api.createExport({ name: '=Clicks' });
    const range = { start_at: minutesAgo(3), end_at: minutesAgo(1) };
    await api.call('POST', `batch_exports/${id}/backfills/`, range);
    const [action, name, asked] = await newest();
    expect([action, name]).toEqual(['backfill.create', '=Clicks']);
    expect(asked).toEqual(expect.arrayContaining(Object.entries(range)));
    const { body } = await api.call('POST', 'keys/', { name: 'Reports', preset: 'viewer' });
    const fields = [
      ['name', 'Reports'],
      ['user', 'ada@example.com'],
      ['scopes', ['batch_export:read', 'dashboard:read', 'query:read']],
    ];
    expect(await newest()).toEqual(['key.create', 'Reports', fields]);
    await api.call('POST', `keys/${String(body.id)}/rotate/`, { overlap_seconds: 0 });
    const rotated = [...fields, ['rotated_from', body.id]];
    expect(await newest()).toEqual(['key.rotate', 'Reports', rotated]);
    await api.call('DELETE', `keys/${String(body.id)}/`);
    expect((await read('?limit=1'))[0]?.changes).toEqual([
      { field: 'status', before: 'expired', after: 'revoked', secret: false },
    ]);
    const user = await api.call('POST', '/api/users/', { email: 'eve@example.com', first_name: 'Eve' });
    const created = [
      ['email', 'eve@example.com'],
      ['first_name', 'Eve'],
    ];
    expect(await newest()).toEqual(['user.create', 'eve@example.com', created]);
    await api.call('POST', `/api/users/${String(user.body.id)}/disable/`);
    expect(await newest()).toEqual(['user.disable', 'eve@example.com', [['disabled', true]]]);
    await api.call('DELETE', `batch_exports/${id}/`);
    expect(await newest()).toEqual(['batch_export.delete', '=Clicks', []]);
  });

  it('cannot be changed, and new events cannot be deleted', async () => {
    const { pool } = api.database;
    for (const statement of [
      "update exportd.audit_events set address = 'elsewhere'",
      'delete from exportd.audit_events',
      'truncate exportd.audit_events',
    ])
      await expect(pool.query(statement)).rejects.toThrow('append-only');
  });
});

describe('an event', () => {
  it('is deleted when its retention is over', async () => {
    const { pool } = api.database;
    await pool.query(
      `insert into exportd.audit_events (recorded_at, action, outcome)
       values (now() - interval '3 days', 'old', 'done'), (now() - interval '1 day', 'young', 'done')`,
    );
    expect(await deleteExpiredAuditEvents(pool, 2 * 86_400_000)).toBe(1);
    expect((await readAll("action in ('old', 'young')")).map(({ action }) => action)).toEqual(['young']);
  });

  it('is deleted with ended sessions, whose keys stay', async () => {
    const { pool } = api.database;
    const { id } = await api.newKey(api.projectId);
    await pool.query(
      `insert into exportd.console_sessions (token_hash, key_id, user_agent, address, last_seen_at, expires_at)
       select sha256(age::text::bytea), $1, '', '',
         now() - age * interval '1 day', now() + interval '1 day' from unnest(array[0, 5]) age`,
      [id],
    );
    await deleteEndedSessions(pool, 3 * 86_400_000);
    const { rows } = await pool.query('select token_hash from exportd.console_sessions where key_id = $1', [
      id,
    ]);
    expect(rows).toHaveLength(1);
  });
});

describe('GET audit', () => {
  it('pages and filters events of the project, newest first', async () => {
    const { key, id } = await api.newKey(api.projectId);
    const created = await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/' }, bearer(key));
    await api.call('PATCH', `webhooks/${String(created.body.id)}/`, { enabled: false }, bearer(key));
    const own = await read(`?key=${id}`);
    expect(own.map(({ action }) => action)).toEqual(['webhook.update', 'webhook.create']);
    const first = await api.call('GET', `audit/?key=${id}&limit=1`);
    expect(first.body.next).toContain('offset=1');
    const of = async (query: string) => (await read(`?key=${id}&${query}`)).map(({ action }) => action);
    expect(await of('action=webhook.create')).toEqual(['webhook.create']);
    expect(await of('action=webhook.create,webhook.update')).toHaveLength(2);
    expect(await of(`object=webhooks/${String(created.body.id)}`)).toHaveLength(2);
    expect(await of('object=webhooks/4711')).toEqual([]);
    expect(await of(`user=${api.userId}`)).toHaveLength(2);
    expect(await of('user=4711')).toEqual([]);
    expect(await of('since=-1h')).toHaveLength(2);
    expect(await of(`since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
    const inAMinute = new Date(Date.now() + 60_000).toISOString();
    expect(await of(`since=-1h&until=${inAMinute}`)).toHaveLength(2);
    expect(await of('until=-1h')).toEqual([]);
    expect(await of('outcome=failed')).toEqual([]);
    expect((await api.call('GET', 'audit/?colour=blue')).status).toBe(400);
  });

  it('has names to choose from, also of keys that are gone, and none of other projects', async () => {
    const { key } = await api.newKey(api.otherProjectId);
    const gone = await api.newKey(api.projectId);
    await api.call('POST', 'webhooks/', { url: 'http://127.0.0.1:9/' }, bearer(gone.key));
    await api.database.pool.query('update exportd.api_keys set project_ids = $2 where id = $1', [
      gone.id,
      [api.otherProjectId],
    ]);
    const names = async (path: string, by = api.key) =>
      (await api.call('GET', path, undefined, bearer(by))).body as {
        users: { email: string }[];
        keys: { id: string }[];
        actions: string[];
      };
    const own = await names('console/audit/names/');
    expect(own.users).toContainEqual({ id: api.userId, email: 'ada@example.com' });
    expect(own.keys.map(({ id }) => id)).toContain(gone.id);
    expect(own.actions).toContain('webhook.create');
    await api.database.pool.query(
      `insert into exportd.users (email, distinct_id) values ('x@example.com', 'x')`,
    );
    const other = await names(`/api/projects/${api.otherProjectId}/console/audit/names/`, key);
    expect(other.users.map(({ email }) => email)).not.toContain('x@example.com');
    const { rows } = await api.database.pool.query<{ id: string }>(
      'select id from exportd.api_keys where not $1 = any(project_ids)',
      [api.otherProjectId],
    );
    const foreign = new Set(rows.map(({ id }) => id));
    expect(other.keys.filter(({ id }) => foreign.has(id))).toEqual([]);
    const narrow = await api.newKey(api.projectId, ['batch_export:read']);
    const refused = await api.call('GET', 'console/audit/names/', undefined, bearer(narrow.key));
    expect(refused.status).toBe(403);
  });

  it('shows nothing of other projects', async () => {
    const { key } = await api.newKey(api.otherProjectId);
    const url = `/api/projects/${api.otherProjectId}/audit/`;
    const webhooks = `/api/projects/${api.otherProjectId}/webhooks/`;
    await api.call('POST', webhooks, { url: 'http://127.0.0.1:9/' }, bearer(key));
    const { results } = (await api.call('GET', url, undefined, bearer(key))).body as {
      results: AuditEvent[];
    };
    expect(results.map(({ action }) => action)).toContain('webhook.create');
    expect((await read('?limit=1000')).map(({ id }) => id)).not.toContain(results[0]?.id);
  });
});

describe('GET audit as CSV', () => {
  const csv = async (query = 'format=csv', headers: Readonly<Record<string, string>> = {}) => {
    const { status, text, headers: sent } = await api.call('GET', `audit/?${query}`, undefined, headers);
    return { status, sent, lines: text.trimEnd().split('\r\n') };
  };

  it('has a line for each event of the filters, by format or Accept', async () => {
    const { key, id } = await api.newKey(api.projectId);
    const export_ = await api.createExport({ name: '=HYPERLINK("http://evil.example")' });
    const client = { ...bearer(key), 'user-agent': '@SUM(1), "two"' };
    await api.call('PATCH', `batch_exports/${export_}/`, { name: '-2+3' }, client);
    const { status, sent, lines } = await csv(`format=csv&key=${id}`);
    expect([status, sent['content-type'], sent['content-disposition'], sent.vary]).toEqual([
      200,
      'text/csv; charset=utf-8; header=present',
      expect.stringMatching(/^attachment; filename="audit-\d{4}-\d\d-\d\d\.csv"$/),
      expect.stringMatching(/accept/i),
    ]);
    const [header, line = '', ...more] = lines;
    expect(header).toBe(
      'time,user,api_key,project,action,object_name,object,changes,outcome,status,detail,address,client',
    );
    expect(more).toEqual([]);
    const [time, ...fields] = line.split(',');
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(fields.join(',')).toBe(
      [
        'ada@example.com',
        `${key.slice(0, 8)}…`,
        'Shop',
        'batch_export.update',
        "'-2+3",
        `batch_exports/${export_}`,
        String.raw`"name: ""=HYPERLINK(\""http://evil.example\"")"" → ""-2+3"""`,
        'done',
        '200',
        '',
        '127.0.0.1',
        `"'@SUM(1), ""two"""`,
      ].join(','),
    );
    const accepted = await csv(`key=${id}`, { accept: 'text/csv' });
    expect(accepted.lines).toEqual(lines);
    const json = await api.call('GET', `audit/?key=${id}&format=json`, undefined, { accept: 'text/csv' });
    expect(json.body.count).toBe(1);
    expect((await csv(`format=csv&key=${id}&until=-1h`)).lines).toEqual([header]);
  });

  it('reads a long trail page by page, whole, each event once and none of another project', async () => {
    const { pool } = api.database;
    const events = 1_234;
    await pool.query(
      `insert into exportd.audit_events (team_id, object, action, outcome, changes)
       select team, 'test/' || n, 'test', 'done',
         jsonb_build_array(jsonb_build_object('field', 'secret_key', 'before', null, 'after', null, 'secret', true))
       from generate_series(1, $3) n, unnest(array[$1::integer, $2]) team order by n`,
      [api.projectId, api.otherProjectId, events],
    );
    const objects = Array.from({ length: events }, (_, index) => `test/${events - index}`);
    const { lines } = await csv('format=csv&action=test');
    expect(lines.slice(1).map((line) => line.split(',')[6])).toEqual(objects);
    expect(lines[1]).toContain(',secret_key (secret),');
    expect((await csv('format=csv&action=test&limit=600')).lines).toHaveLength(601);
    const { key } = await api.newKey(api.projectId, ['audit:read']);
    const foreign = `/api/projects/${api.otherProjectId}/audit/?format=csv`;
    expect((await api.call('GET', foreign, undefined, bearer(key))).status).toBe(404);
    const narrow = await api.newKey(api.projectId, ['batch_export:read']);
    expect((await csv('format=csv', bearer(narrow.key))).status).toBe(403);
  });

  it('leaves actions out, as the list does', async () => {
    const shown = async (query: string) => (await read(query)).map(({ action }) => action);
    const excluded = 'exclude_action=test,webhook.create';
    expect(await shown('?limit=1000&action=key.create&exclude_action=no.such')).toContain('key.create');
    expect(await shown(`?limit=1000&${excluded}`)).not.toContain('webhook.create');
    const { lines } = await csv(`format=csv&${excluded}`);
    expect(lines.filter((line) => line.includes(',webhook.create,'))).toEqual([]);
  });

  it.each([
    ['an unknown format', 'format=xml', 'format'],
    ['two formats', 'format=csv&format=json', 'format'],
    ['an offset', 'format=csv&offset=5', 'offset'],
    ['no limit', 'format=csv&limit=0', 'limit'],
    ['a limit that is no number', 'format=csv&limit=all', 'limit'],
    ['a time that is none', 'format=csv&since=yesterday', 'since'],
  ])('rejects %s', async (_, query, attr) => {
    const { status, body } = await api.call('GET', `audit/?${query}`);
    expect([status, body.attr]).toEqual([400, attr]);
  });

  it('names nothing of another project that a failed request has named', async () => {
    const { id } = await api.newKey(api.otherProjectId);
    const { pool } = api.database;
    await pool.query(`update exportd.api_keys set name = 'Foreign' where id = $1`, [id]);
    await pool.query(
      `insert into exportd.audit_events (team_id, action, object, outcome)
       values ($1, 'key.revoke', $2, 'failed'), ($1, 'batch_export.update', 'batch_exports/x', 'failed'),
         ($1, 'user.disable', 'users/99999999999', 'failed')`,
      [api.projectId, `keys/${id}`],
    );
    const named = await read('?limit=3');
    expect(named.map(({ object_name }) => object_name)).toEqual([null, null, null]);
  });
});
