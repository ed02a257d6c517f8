import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FastifyInstance } from 'fastify';
import { readSettings } from '../../src/config/settings.ts';
import { type Scope, scopes } from '../../src/http/scopes.ts';
import { requestJob } from '../../src/jobs/jobs.ts';
import { tableCheckJob } from '../../src/table_commits/table_jobs.ts';
import { minutesAgo } from '../decisions/commander.ts';
import { openApiHarness, type ApiHarness, type ApiResponse } from './api_harness.ts';
import { createServerlessApp } from '../../src/http/serverless_app.ts';

type Method = Parameters<ApiHarness['call']>[0];

/** What an operation of a project requires. A new route needs an entry: without one, a test fails. */
interface Expected {
  readonly scope: Scope;
  /** What it needs before it looks for the object of its path. */
  readonly body?: object;
  readonly search?: string;
  /** Bodies of the own project that name objects of another one; each is answered as if those did not exist. */
  readonly foreignBodies?: (victim: Ids) => readonly object[];
}

const reads = { scope: 'batch_export:read' } as const;
const writes = { scope: 'batch_export:write' } as const;
const queries = { scope: 'query:read' } as const;
const writesQueries = { scope: 'query:write' } as const;
const administersKeys = { scope: 'key:admin' } as const;

const range = { start_at: minutesAgo(3), end_at: minutesAgo(1) };

/** Every operation below a project. */
const operations: Readonly<Record<string, Expected>> = {
  'GET batch_exports': reads,
  'POST batch_exports': writes,
  'GET batch_exports/:id': reads,
  'PATCH batch_exports/:id': writes,
  'PUT batch_exports/:id': {
    ...writes,
    body: { name: 'Theirs', interval: 'hour', destination: { type: 'S3', config: { prefix: 'mine' } } },
  },
  'DELETE batch_exports/:id': writes,
  'POST batch_exports/check': writes,
  'POST batch_exports/:id/check': writes,
  'POST batch_exports/test': writes,
  'POST batch_exports/:id/test': writes,
  'GET batch_exports/test': { ...reads, search: '?destination=S3' },
  'POST batch_exports/run_test_step_new': writes,
  'POST batch_exports/:id/run_test_step': writes,
  'POST batch_exports/:id/pause': writes,
  'POST batch_exports/:id/unpause': writes,
  'POST batch_exports/:id/backfill': { ...writes, body: range },
  'POST batch_exports/retry_failed': {
    ...writes,
    foreignBodies: ({ batchExport }) => [{ batch_export: batchExport }],
  },
  'GET batch_exports/:batch_export_id/runs': reads,
  'GET batch_exports/:batch_export_id/runs/:id': reads,
  'POST batch_exports/:batch_export_id/runs/:id/retry': writes,
  'POST batch_exports/:batch_export_id/runs/:id/cancel': writes,
  'GET batch_exports/:batch_export_id/backfills': reads,
  'POST batch_exports/:batch_export_id/backfills': { ...writes, body: range },
  'GET batch_exports/:batch_export_id/backfills/:id': reads,
  'POST batch_exports/:batch_export_id/backfills/:id/cancel': writes,
  'POST batch_exports/:batch_export_id/backfills/:id/pause': writes,
  'POST batch_exports/:batch_export_id/backfills/:id/unpause': writes,
  'GET batch_exports/:batch_export_id/intervals': reads,
  'GET batch_exports/:batch_export_id/intervals/:start/difference': reads,
  'POST batch_exports/:batch_export_id/intervals/:start/difference': {
    ...writes,
    body: { decision: 'keep', reason: 'Deleted' },
  },
  'GET batch_exports/:batch_export_id/manifests': reads,
  'GET batch_exports/:batch_export_id/reading': reads,
  'GET batch_exports/:batch_export_id/table': reads,
  'GET batch_exports/:batch_export_id/table/history': reads,
  'POST batch_exports/:batch_export_id/table/check': writes,
  'POST batch_exports/:batch_export_id/table/repair': writes,
  // That of the victim's job.
  'GET jobs/:id': writes,
  'GET batch_exports/:id/logs': reads,
  'GET batch_exports/:batch_export_id/runs/:id/logs': reads,
  'GET batch_exports/:id/why': reads,
  'GET webhooks': reads,
  'POST webhooks': {
    ...writes,
    foreignBodies: ({ batchExport }) => [{ url: 'https://hooks.example.com/x', batch_export: batchExport }],
  },
  'GET webhooks/:id': reads,
  'PATCH webhooks/:id': writes,
  'DELETE webhooks/:id': writes,
  'POST webhooks/:id/test': writes,
  'GET webhooks/:id/deliveries': reads,
  'GET webhooks/:id/deliveries/:delivery_id': reads,
  'POST webhooks/:id/deliveries/:delivery_id/resend': writes,
  'GET dashboards': { scope: 'dashboard:read' },
  'POST query/check_auth_for_async': queries,
  'GET query/draft_sql': queries,
  'POST query': {
    ...queries,
    foreignBodies: ({ action }) => [
      { query: { kind: 'TrendsQuery', series: [{ kind: 'ActionsNode', id: Number(action) }] } },
      { query: { kind: 'DialectQuery', query: `select matchesAction(${action}) from events` } },
      { query: { kind: 'EventsQuery', select: [], actionId: Number(action) } },
    ],
  },
  'GET query/:id': queries,
  'DELETE query/:id': queries,
  'GET actions': queries,
  'POST actions': writesQueries,
  'GET actions/:id': queries,
  'PATCH actions/:id': { ...writesQueries, body: { name: 'Mine' } },
  'DELETE actions/:id': writesQueries,
  'GET saved_queries': queries,
  'POST saved_queries': writesQueries,
  'GET saved_queries/:id': queries,
  'PATCH saved_queries/:id': { ...writesQueries, body: { name: 'Theirs', version: 1 } },
  'DELETE saved_queries/:id': writesQueries,
  'GET keys': administersKeys,
  'POST keys': {
    ...administersKeys,
    foreignBodies: ({ project }) => [{ name: 'Mine', scopes: ['query:read'], projects: [project] }],
  },
  'GET keys/:id': administersKeys,
  'DELETE keys/:id': administersKeys,
  'POST keys/:id/rotate': administersKeys,
  'GET users': administersKeys,
  'GET audit': { scope: 'audit:read' },
  'GET console/audit/names': { scope: 'audit:read' },
  'GET console/overview': reads,
  'GET console/batch_exports/:batch_export_id/timeline': reads,
  'GET console/batch_exports/:batch_export_id/active_runs': reads,
  'GET console/batch_exports/:batch_export_id/coverage': reads,
  'GET console/batch_exports/:batch_export_id/first_row': reads,
  'GET console/batch_exports/:batch_export_id/same_trouble': reads,
  'GET console/batch_exports/:batch_export_id/runs/:id/steps': reads,
  'GET batch_exports/:batch_export_id/intervals/:start': reads,
  'GET batch_exports/:batch_export_id/intervals/:start/row': {
    ...reads,
    search: `?uuid=${randomUUID()}`,
  },
  'GET batch_exports/:batch_export_id/intervals/:start/verifications': reads,
  'POST batch_exports/:batch_export_id/intervals/:start/verifications': writes,
  'GET source/check': writes,
  'POST source/map': { scope: 'source:read' },
  'POST batch_exports/preview': writes,
  'POST batch_exports/estimate': writes,
  'POST batch_exports/:id/preview': writes,
  'POST batch_exports/:id/estimate': writes,
  'GET console/query/vocabulary': queries,
  'GET console/query/names': queries,
  'GET console/scopes': administersKeys,
  'POST console/query/check': queries,
};

/** What a server answers without a key, and the projects of a key. Everything else needs one. */
const publicOperations = [
  'GET /',
  'GET /exports/*',
  'GET /query',
  'GET /keys',
  'GET /audit',
  'GET /source',
  'GET /webhooks',
  'GET /console/assets/:name',
  'POST /console/session',
  'GET /console/session',
  'DELETE /console/session',
  'DELETE /console/sessions',
  'GET /healthz',
  'GET /livez',
  'GET /readyz',
  'GET /api/schema',
  'GET /api/docs',
  'GET /api/docs/json',
  'GET /api/docs/yaml',
  'GET /api/docs/static/index.html',
  'GET /api/docs/static/swagger-initializer.js',
  'GET /api/docs/static/theme/exportd.css',
];
const ofAnyKey = ['GET /api/projects'];
/** Those that reach beyond the projects of a key: they need `installation:admin`. */
const ofInstallation = [
  'GET /api/users',
  'POST /api/users',
  'POST /api/users/:id/disable',
  'POST /api/users/:id/enable',
  'POST /api/projects',
  'PATCH /api/projects/:id',
];

/** The ids of an object of every kind, of one project. */
interface Ids {
  readonly project: number;
  readonly batchExport: string;
  readonly run: string;
  readonly backfill: string;
  readonly webhook: string;
  readonly delivery: string;
  readonly job: string;
  readonly query: string;
  readonly action: string;
  readonly savedQuery: string;
  readonly key: string;
  readonly start: string;
}

/** The id of the object that a parameter of a path names; undefined if no kind of object is known for it. */
function idOf(path: string, parameter: string, ids: Ids): string | undefined {
  const [before = ''] = path.split(`/:${parameter}`);
  const kind = parameter === 'start' ? 'intervals' : before.split('/').at(-1);
  const known: Readonly<Record<string, string>> = {
    batch_exports: ids.batchExport,
    runs: ids.run,
    backfills: ids.backfill,
    webhooks: ids.webhook,
    deliveries: ids.delivery,
    jobs: ids.job,
    query: ids.query,
    actions: ids.action,
    saved_queries: ids.savedQuery,
    keys: ids.key,
    intervals: ids.start,
  };
  return known[kind ?? ''];
}

const parametersOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

const pathWith = (path: string, ids: Ids): string =>
  parametersOf(path).reduce(
    (filled, name) => filled.replace(`:${name}`, encodeURIComponent(idOf(path, name, ids) ?? name)),
    path,
  );

/** All operations of a server: each method of each path, except HEAD and the 405 of other methods. */
async function registeredOperations(): Promise<string[]> {
  const found: string[] = [];
  const onInitialization = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      if (typeof method === 'string' && method !== 'HEAD') found.push(`${method} ${url}`);
    });
  };
  subscribe('fastify.initialization', onInitialization);
  const app = await createServerlessApp();
  unsubscribe('fastify.initialization', onInitialization);
  await app.close();
  return found;
}

const roots = ['projects', 'environments'];
const inProject = (root: string) => `/api/${root}/:project_id/`;

let api: ApiHarness;
let victim: Ids;
let attackerKey: string;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    EXPORTD_QUERIES_PER_HOUR: '100000',
    EXPORTD_WEBHOOK_TIMEOUT: '100ms',
  });
  attackerKey = (await api.newKey(api.otherProjectId)).key;
  victim = await createVictim();
});
afterAll(() => api.close());

/** One object of every kind in the project of the harness. */
async function createVictim(): Promise<Ids> {
  const created = async (path: string, body: object) => {
    const response = await api.call('POST', path, body);
    if (response.status >= 300) throw new Error(`${path}: ${response.status} ${response.text}`);
    return response.body;
  };
  const batchExport = await api.createExport();
  const backfill = await created(`batch_exports/${batchExport}/backfills/`, range);
  const { body } = await api.call('GET', `batch_exports/${batchExport}/runs/`);
  const [run] = body.results as { id: string; data_interval_start: string }[];
  const webhook = await created('webhooks/', { url: 'http://127.0.0.1:9/hook' });
  const delivery = randomUUID();
  await api.database.pool.query(
    `with notification as (
       insert into exportd.notifications (id, type, team_id, data) values ($1, 'run.failed', $2, '{}') returning id)
     insert into exportd.webhook_deliveries (id, notification_id, webhook_id, status)
     select $3, id, $4, 'failed' from notification`,
    [randomUUID(), api.projectId, delivery, webhook.id],
  );
  const job = await requestJob(
    { pool: api.database.pool, settings: readSettings({ DATABASE_URL: api.database.url }) },
    tableCheckJob,
    { team_id: api.projectId, user_id: api.userId, target: batchExport, parameters: {} },
  );
  const query = 'query-of-the-victim';
  await created('query/', { query: { kind: 'DialectQuery', query: 'select 1' }, client_query_id: query });
  const action = await created('actions/', { name: 'Theirs', steps: [{ event: 'bought' }] });
  const saved = await created('saved_queries/', {
    name: 'Theirs',
    query: { kind: 'DialectQuery', query: 'select 1' },
  });
  const key = await created('keys/', { name: 'Victim', scopes: ['query:read'] });
  return {
    project: api.projectId,
    batchExport,
    run: String(run?.id),
    backfill: String(backfill.id),
    webhook: String(webhook.id),
    delivery,
    job: String(job),
    query,
    action: String(action.id),
    savedQuery: String(saved.id),
    key: String(key.id),
    start: String(run?.data_interval_start),
  };
}

/** Sends a request with a key. */
const attack = (key: string, method: string, url: string, body?: object): Promise<ApiResponse> =>
  api.call(method as Method, url, body, { authorization: `Bearer ${key}` });

/** Everything of the victim's project that an attack could have changed. */
async function stateOfVictim(): Promise<string> {
  const tables = [
    'batch_exports',
    'backfills',
    'commands',
    'webhooks',
    'queries',
    'saved_queries',
    'actions',
    'jobs',
  ];
  const { pool } = api.database;
  const states = tables.map((table) =>
    pool.query(`select to_jsonb(row) as row from exportd.${table} row where team_id = $1 order by 1`, [
      api.projectId,
    ]),
  );
  const [deliveries, keys] = [
    pool.query('select to_jsonb(row) as row from exportd.webhook_deliveries row order by 1'),
    pool.query(
      'select id, revoked_at, expires_at, project_ids from exportd.api_keys order by created_at, id',
    ),
  ];
  const results = await Promise.all([...states, deliveries, keys]);
  return JSON.stringify(results.map(({ rows }) => rows as unknown[]));
}

/** The users, and the projects with the keys that cover them. */
const stateOfInstallation = async (): Promise<unknown> => {
  const { pool } = api.database;
  return [
    (await pool.query('select id, email, disabled_at from exportd.users order by id')).rows,
    (await pool.query('select id, name from exportd.projects order by id')).rows,
  ];
};

describe('every route', () => {
  it('has an entry here, so that it is attacked, and every entry is of a route', async () => {
    const registered = await registeredOperations();
    const known = [
      ...publicOperations,
      ...ofAnyKey,
      ...ofInstallation,
      ...roots.flatMap((root) =>
        Object.keys(operations).map((operation) => operation.replace(' ', ` ${inProject(root)}`)),
      ),
    ];
    expect(registered.toSorted()).toEqual(known.toSorted());
  });

  it('has objects of the victim for all ids of its path', () => {
    const without = Object.keys(operations).filter((operation) => {
      const [, path = ''] = operation.split(' ');
      return parametersOf(path).some((name) => idOf(path, name, victim) === undefined);
    });
    expect(without).toEqual([]);
  });
});

describe('a key of another project', () => {
  it('finds nothing in this project, below both roots and however its id is spelled', async () => {
    const before = await stateOfVictim();
    const spellings = (id: number) => [String(id), `0${id}`, `${id}%20`, `%3${id}`, `${id}.0`, `+${id}`];
    const answers: string[] = [];
    for (const operation of Object.keys(operations))
      for (const root of roots)
        for (const project of spellings(api.projectId)) {
          const [method = '', path = ''] = operation.split(' ');
          const url = `/api/${root}/${project}/${pathWith(path, victim)}`;
          const { status, body } = await attack(attackerKey, method, url);
          if (status !== 404 || body.code !== 'not_found') answers.push(`${method} ${url}: ${status}`);
        }
    expect(answers).toEqual([]);
    expect(await stateOfVictim()).toBe(before);
  });

  it('finds nothing of this project below its own', async () => {
    const before = await stateOfVictim();
    const answers: string[] = [];
    for (const [operation, { body, search = '' }] of Object.entries(operations))
      for (const root of roots) {
        const [method = '', path = ''] = operation.split(' ');
        if (parametersOf(path).length === 0) continue;
        const url = `/api/${root}/${api.otherProjectId}/${pathWith(path, victim)}${search}`;
        const { status } = await attack(attackerKey, method, url, body);
        if (status !== 404) answers.push(`${method} ${url}: ${status}`);
      }
    expect(answers).toEqual([]);
    expect(await stateOfVictim()).toBe(before);
  });

  it('names nothing of this project in its bodies', async () => {
    const before = await stateOfVictim();
    const attacks = Object.entries(operations).flatMap(([operation, { foreignBodies }]) =>
      (foreignBodies?.(victim) ?? []).map((body) => [operation, body] as const),
    );
    for (const [operation, body] of attacks) {
      const [method = '', path = ''] = operation.split(' ');
      const { status } = await attack(
        attackerKey,
        method,
        `/api/projects/${api.otherProjectId}/${path}`,
        body,
      );
      expect([operation, status]).toEqual([operation, 400]);
    }
    expect(await stateOfVictim()).toBe(before);
  });

  it('and an own object reaches no object of this project below it', async () => {
    const own = `/api/projects/${api.otherProjectId}`;
    const listed = await attack(attackerKey, 'GET', `${own}/webhooks/`);
    expect(listed.status).toBe(200);
    const webhook = await attack(attackerKey, 'POST', `${own}/webhooks/`, { url: 'http://127.0.0.1:9/own' });
    const paths = [`deliveries/${victim.delivery}/`, `deliveries/${victim.delivery}/resend/`];
    const [read, resent] = [
      await attack(attackerKey, 'GET', `${own}/webhooks/${String(webhook.body.id)}/${paths[0]}`),
      await attack(attackerKey, 'POST', `${own}/webhooks/${String(webhook.body.id)}/${paths[1]}`),
    ];
    expect([webhook.status, read.status, resent.status]).toEqual([201, 404, 404]);
  });
});

describe('a key', () => {
  /** Objects that do not exist: what a key may do has no effect. */
  const nothing = (): Ids => ({
    ...victim,
    batchExport: randomUUID(),
    run: randomUUID(),
    backfill: randomUUID(),
    webhook: randomUUID(),
    delivery: randomUUID(),
    job: randomUUID(),
    query: randomUUID(),
    action: '2147483647',
    savedQuery: randomUUID(),
    key: randomUUID(),
  });

  it.each(scopes)('with the scope %s alone can do what that allows, and nothing else', async (scope) => {
    const { key } = await api.newKey(api.projectId, [scope]);
    const wrong: string[] = [];
    for (const [operation, expected] of Object.entries(operations)) {
      const isAllowed = expected.scope === scope;
      const [method = '', path = ''] = operation.split(' ');
      const ids = isAllowed ? nothing() : victim;
      const { status } = await attack(key, method, `/api/projects/${api.projectId}/${pathWith(path, ids)}`);
      const isRight = isAllowed ? ![401, 403].includes(status) && status < 500 : status === 403;
      if (!isRight) wrong.push(`${operation}: ${status}`);
    }
    expect(wrong).toEqual([]);
  });

  it.each(scopes)('reaches beyond its projects with installation:admin alone, not with %s', async (scope) => {
    const { key } = await api.newKey(api.projectId, [scope]);
    const before = await stateOfInstallation();
    const statuses: Record<string, number> = {};
    for (const operation of ofInstallation) {
      const [method = '', path = ''] = operation.split(' ');
      statuses[operation] = (await attack(key, method, path.replace(':id', '4711'))).status;
    }
    const allowed = {
      'GET /api/users': 200,
      'POST /api/users': 400,
      'POST /api/users/:id/disable': 404,
      'POST /api/users/:id/enable': 404,
      'POST /api/projects': 400,
      'PATCH /api/projects/:id': 400,
    };
    expect(statuses).toEqual(
      scope === 'installation:admin'
        ? allowed
        : Object.fromEntries(ofInstallation.map((operation) => [operation, 403])),
    );
    expect(await stateOfInstallation()).toEqual(before);
  });

  it('with installation:admin still covers its own projects alone', async () => {
    const { key } = await api.newKey(api.otherProjectId, ['installation:admin', 'key:admin', 'query:read']);
    const body = { name: 'Mine', scopes: ['query:read'], projects: [api.projectId] };
    const created = await attack(key, 'POST', `/api/projects/${api.otherProjectId}/keys/`, body);
    const taken = await attack(key, 'POST', '/api/projects/', { name: 'Mine', id: api.projectId });
    const read = await attack(key, 'GET', `/api/projects/${api.projectId}/keys/`);
    expect([created.status, created.body.attr]).toEqual([400, 'projects']);
    expect([taken.status, taken.body.attr]).toEqual([400, 'id']);
    expect(read.status).toBe(404);
    const renamed = await attack(key, 'PATCH', `/api/projects/${api.projectId}/`, { name: 'Mine' });
    expect(renamed.status).toBe(404);
  });

  it('is needed by every operation of a project', async () => {
    const wrong: string[] = [];
    for (const operation of Object.keys(operations))
      for (const authorization of ['', 'Bearer exk_unknown', `Basic ${api.key}`]) {
        const [method = '', path = ''] = operation.split(' ');
        const url = `/api/projects/${api.projectId}/${pathWith(path, victim)}`;
        const { status } = await api.call(method as Method, url, undefined, { authorization });
        if (status !== 401) wrong.push(`${operation}: ${status}`);
      }
    for (const operation of ofInstallation) {
      const [method = '', path = ''] = operation.split(' ');
      const { status } = await api.call(method as Method, path, undefined, { authorization: '' });
      if (status !== 401) wrong.push(`${operation}: ${status}`);
    }
    expect(wrong).toEqual([]);
  });
});
