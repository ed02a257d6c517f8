import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type Scope, scopes } from '../../src/http/scopes.ts';
import { minutesAgo } from '../decisions/commander.ts';
import { casesOf } from '../setup/effort.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';
import { revokeKey } from '../../src/http/accounts/api_keys.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/**
 * Every operation below a project, with its required scope and its status without a body: 400 for missing fields, 409
 * for the retry of an active run.
 */
const operations: readonly [Method, string, Scope, number][] = [
  ['GET', 'batch_exports', 'batch_export:read', 200],
  ['POST', 'batch_exports', 'batch_export:write', 400],
  ['POST', 'batch_exports/retry_failed', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id', 'batch_export:read', 200],
  ['PATCH', 'batch_exports/:id', 'batch_export:write', 200],
  ['DELETE', 'batch_exports/:id', 'batch_export:write', 204],
  ['POST', 'batch_exports/:id/backfill', 'batch_export:write', 400],
  ['POST', 'batch_exports/:id/pause', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/unpause', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id/logs', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/why', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/runs', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/runs/:run', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/runs/:run/retry', 'batch_export:write', 409],
  ['POST', 'batch_exports/:id/runs/:run/cancel', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id/intervals', 'batch_export:read', 200],
  ['GET', 'source/check', 'batch_export:write', 200],
  ['POST', 'source/map', 'source:read', 200],
  ['POST', 'batch_exports/preview', 'batch_export:write', 200],
  ['POST', 'batch_exports/estimate', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id/manifests', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/reading', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/table', 'batch_export:read', 400],
  ['GET', 'batch_exports/:id/table/history', 'batch_export:read', 400],
  ['POST', 'batch_exports/:id/table/check', 'batch_export:write', 400],
  ['POST', 'batch_exports/:id/table/repair', 'batch_export:write', 400],
  ['GET', 'batch_exports/:id/intervals/:start/difference', 'batch_export:read', 409],
  ['POST', 'batch_exports/:id/intervals/:start/difference', 'batch_export:write', 400],
  ['GET', 'batch_exports/:id/backfills', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/backfills', 'batch_export:write', 400],
  ['GET', 'batch_exports/:id/backfills/:backfill', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/cancel', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/pause', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/unpause', 'batch_export:write', 200],
];

const roots = ['projects', 'environments'] as const;
const suffixes = ['', '/'] as const;

let api: ApiHarness;
let otherKey: string;
let revokedKey: string;
let narrowKeys: Readonly<Record<string, string>>;
let resources: Resources;

beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000' });
  otherKey = (await api.newKey(api.otherProjectId)).key;
  const revoked = await api.newKey(api.projectId);
  revokedKey = revoked.key;
  await revokeKey(api.database.pool, revoked.id);
  const without = async (scope: string) =>
    (
      await api.newKey(
        api.projectId,
        scopes.filter((one) => one !== scope),
      )
    ).key;
  narrowKeys = {
    'batch_export:read': await without('batch_export:read'),
    'batch_export:write': await without('batch_export:write'),
    'source:read': await without('source:read'),
  };
  resources = await createResources();
});
afterAll(() => api.close());

/** The ids in a path. */
interface Resources {
  readonly id: string;
  readonly run: string;
  readonly backfill: string;
}

const urlOf = (root: string, path: string, suffix: string, resources: Resources) =>
  `/api/${root}/${api.projectId}/${path}${suffix}`
    .replace(':id', resources.id)
    .replace(':run', resources.run)
    .replace(':backfill', resources.backfill)
    .replace(':start', encodeURIComponent(minutesAgo(2)));

/** Creates an export with a backfill and its runs. */
async function createResources(): Promise<Resources> {
  const id = await api.createExport();
  const range = { start_at: minutesAgo(3), end_at: minutesAgo(1) };
  const { body } = await api.call('POST', `batch_exports/${id}/backfills/`, range);
  const runs = await api.call('GET', `batch_exports/${id}/runs/`);
  return { id, backfill: String(body.id), run: String((runs.body.results as { id: string }[])[0]?.id) };
}

describe.each(operations)('%s %s', (method, path, scope, expected) => {
  const cases = casesOf(
    [
      ['projects', '/'],
      ['environments', ''],
    ] as const,
    roots.flatMap((root) => suffixes.map((suffix) => [root, suffix] as const)),
  );

  it.each(cases)(
    'requires a key of the project with the scope, below /api/%s with suffix "%s"',
    async (root, suffix) => {
      const url = urlOf(root, path, suffix, resources);
      const request = (authorization: string) => api.call(method, url, undefined, { authorization });
      const rejections = {
        none: await request(''),
        basic: await request('Basic YTpi'),
        unknown: await request('Bearer exk_unknown'),
        revoked: await request(`Bearer ${revokedKey}`),
        narrow: await request(`Bearer ${narrowKeys[scope] ?? ''}`),
        other: await request(`Bearer ${otherKey}`),
      };
      const actual = Object.entries(rejections).map(([name, { status, body }]) => [
        name,
        status,
        body.type,
        body.code,
        body.attr,
      ]);
      expect(actual).toEqual([
        ['none', 401, 'authentication_error', 'not_authenticated', null],
        ['basic', 401, 'authentication_error', 'not_authenticated', null],
        ['unknown', 401, 'authentication_error', 'authentication_failed', null],
        ['revoked', 401, 'authentication_error', 'authentication_failed', null],
        ['narrow', 403, 'permission', 'permission_denied', null],
        // A key grants one project; other projects are not found.
        ['other', 404, 'not_found', 'not_found', null],
      ]);
      expect(rejections.none.headers['www-authenticate']).toBe('Bearer');
      expect(rejections.narrow.body.detail).toContain(scope);
    },
  );

  it.each(cases)('accepts a valid key below /api/%s with suffix "%s"', async (root, suffix) => {
    const { status } = await api.call(method, urlOf(root, path, suffix, await createResources()));
    expect(status).toBe(expected);
  });
});

describe('a resource of another project', () => {
  it('is not found with a key of this project', async () => {
    const url = `/api/projects/${api.otherProjectId}/batch_exports/${resources.id}`;
    const authorization = `Bearer ${otherKey}`;
    expect((await api.call('GET', url, undefined, { authorization })).status).toBe(404);
    expect((await api.call('POST', `${url}/pause`, {}, { authorization })).status).toBe(404);
    expect((await api.call('DELETE', url, undefined, { authorization })).status).toBe(404);
    expect((await api.call('GET', `batch_exports/${resources.id}`)).status).toBe(200);
  });
});

describe('GET /api/projects', () => {
  it.each(suffixes)('lists the project of any valid key, with suffix "%s"', async (suffix) => {
    const { key } = await api.newKey(api.projectId, ['query:read']);
    const response = await api.call('GET', `/api/projects${suffix}`, undefined, {
      authorization: `Bearer ${key}`,
    });
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      count: 1,
      next: null,
      previous: null,
      results: [
        {
          id: api.projectId,
          name: 'Shop',
          timezone: 'UTC',
          week_start_day: 'sunday',
          external_id: expect.stringMatching(/^exportd-/),
        },
      ],
    });
    expect((await api.call('GET', `/api/projects${suffix}`, undefined, { authorization: '' })).status).toBe(
      401,
    );
  });
});

describe('paths', () => {
  it.each([
    ['a project that is not a decimal number', '/api/projects/0x1/batch_exports'],
    ['a project with leading zeros', '/api/projects/01/batch_exports'],
    ['an export id that is not a UUID', 'batch_exports/1'],
    ['a run id that is not a UUID', `batch_exports/${randomUUID()}/runs/1`],
    ['an unknown path in a project', 'batch_export'],
    ['an unknown path', '/nothing'],
  ])('respond 404 to %s', async (_, path) => {
    const { status, body } = await api.call('GET', path);
    expect([status, body.type]).toEqual([404, 'not_found']);
  });

  it.each([
    ['PUT', 'batch_exports/', 'GET, HEAD, POST'],
    ['PATCH', 'batch_exports/x/pause/', 'POST'],
    ['PATCH', '/api/projects/', 'GET, HEAD, POST'],
    ['DELETE', '/api/users/', 'GET, HEAD, POST'],
    ['DELETE', '/healthz', 'GET, HEAD'],
    ['TRACE', 'batch_exports/', 'GET, HEAD, POST'],
    ['PROPFIND', 'keys/', 'GET, HEAD, POST'],
    ['QUERY', '/api/schema', 'GET, HEAD'],
  ] as const)('respond 405 to %s %s with the allowed methods', async (method, path, allow) => {
    const { status, headers, body } = await api.call(method, path);
    expect([status, headers.allow, body.code]).toEqual([405, allow, 'method_not_allowed']);
  });
});

describe('check_auth_for_async', () => {
  it('responds without a body to a key that may query the project', async () => {
    const authorizationOf = async (scopes: readonly string[], projectId = api.projectId) =>
      `Bearer ${(await api.newKey(projectId, scopes)).key}`;
    const may = await authorizationOf(['query:read']);
    const mayNot = await authorizationOf(['batch_export:read', 'dashboard:read']);
    const elsewhere = await authorizationOf(['query:read'], api.otherProjectId);
    for (const root of ['projects', 'environments'])
      for (const ending of ['', '/']) {
        const url = `/api/${root}/${api.projectId}/query/check_auth_for_async${ending}`;
        const request = (authorization: string) =>
          api.call('POST', url, undefined, { authorization, 'content-type': 'application/json' });
        const allowed = await request(may);
        expect([allowed.status, allowed.text]).toEqual([200, '']);
        const denied = await request(mayNot);
        expect([denied.status, denied.body.detail]).toEqual([403, expect.stringContaining("'query:read'")]);
        expect([(await request('')).status, (await request(elsewhere)).status]).toEqual([401, 404]);
        expect((await api.call('GET', url)).status).toBe(405);
      }
  });
});
