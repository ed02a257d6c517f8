import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { revokeKey } from '../../src/http/accounts.ts';
import { scopes } from '../../src/http/api_keys.ts';
import { minutesAgo } from '../decisions/commander.ts';
import { openFacade, type Facade } from './facade.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/**
 * Every operation below a project, with the scope it needs and what it answers without a body: 400 for what the body
 * lacks, 409 while the run to retry is active.
 */
const operations: readonly [Method, string, 'batch_export:read' | 'batch_export:write', number][] = [
  ['GET', 'batch_exports', 'batch_export:read', 200],
  ['POST', 'batch_exports', 'batch_export:write', 400],
  ['GET', 'batch_exports/:id', 'batch_export:read', 200],
  ['PATCH', 'batch_exports/:id', 'batch_export:write', 200],
  ['DELETE', 'batch_exports/:id', 'batch_export:write', 204],
  ['POST', 'batch_exports/:id/backfill', 'batch_export:write', 400],
  ['POST', 'batch_exports/:id/pause', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/unpause', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id/logs', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/runs', 'batch_export:read', 200],
  ['GET', 'batch_exports/:id/runs/:run', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/runs/:run/retry', 'batch_export:write', 409],
  ['POST', 'batch_exports/:id/runs/:run/cancel', 'batch_export:write', 200],
  ['GET', 'batch_exports/:id/backfills', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/backfills', 'batch_export:write', 400],
  ['GET', 'batch_exports/:id/backfills/:backfill', 'batch_export:read', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/cancel', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/pause', 'batch_export:write', 200],
  ['POST', 'batch_exports/:id/backfills/:backfill/unpause', 'batch_export:write', 200],
];

const roots = ['projects', 'environments'];
const endings = ['', '/'];

let facade: Facade;
let otherKey: string;
let revokedKey: string;
let narrowKeys: Readonly<Record<string, string>>;
let subject: Subject;

beforeAll(async () => {
  facade = await openFacade({ EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000' });
  otherKey = (await facade.newKey(facade.otherProjectId)).key;
  const revoked = await facade.newKey(facade.projectId);
  revokedKey = revoked.key;
  await revokeKey(facade.database.pool, revoked.id);
  const without = async (scope: string) =>
    (
      await facade.newKey(
        facade.projectId,
        scopes.filter((one) => one !== scope),
      )
    ).key;
  narrowKeys = {
    'batch_export:read': await without('batch_export:read'),
    'batch_export:write': await without('batch_export:write'),
  };
  subject = await newSubject();
});
afterAll(() => facade.close());

/** What the ids of a path stand for. */
interface Subject {
  readonly id: string;
  readonly run: string;
  readonly backfill: string;
}

const addressOf = (root: string, path: string, ending: string, subject: Subject) =>
  `/api/${root}/${facade.projectId}/${path}${ending}`
    .replace(':id', subject.id)
    .replace(':run', subject.run)
    .replace(':backfill', subject.backfill);

/** An export with a backfill and its runs. */
async function newSubject(): Promise<Subject> {
  const id = await facade.createExport();
  const range = { start_at: minutesAgo(3), end_at: minutesAgo(1) };
  const { body } = await facade.call('POST', `batch_exports/${id}/backfills/`, range);
  const runs = await facade.call('GET', `batch_exports/${id}/runs/`);
  return { id, backfill: String(body.id), run: String((runs.body.results as { id: string }[])[0]?.id) };
}

describe.each(operations)('%s %s', (method, path, scope, expected) => {
  const cases = roots.flatMap((root) => endings.map((ending) => [root, ending] as const));

  it.each(cases)(
    'asks for a key of the project with the scope under /api/%s, ending "%s"',
    async (root, ending) => {
      const url = addressOf(root, path, ending, subject);
      const ask = (authorization: string) => facade.call(method, url, undefined, { authorization });
      const refusals = {
        none: await ask(''),
        basic: await ask('Basic YTpi'),
        unknown: await ask('Bearer exk_unknown'),
        revoked: await ask(`Bearer ${revokedKey}`),
        narrow: await ask(`Bearer ${narrowKeys[scope] ?? ''}`),
        other: await ask(`Bearer ${otherKey}`),
      };
      const seen = Object.entries(refusals).map(([name, { status, body }]) => [
        name,
        status,
        body.type,
        body.code,
        body.attr,
      ]);
      expect(seen).toEqual([
        ['none', 401, 'authentication_error', 'not_authenticated', null],
        ['basic', 401, 'authentication_error', 'not_authenticated', null],
        ['unknown', 401, 'authentication_error', 'authentication_failed', null],
        ['revoked', 401, 'authentication_error', 'authentication_failed', null],
        ['narrow', 403, 'permission', 'permission_denied', null],
        // A key is for one project: every other answers as if it did not exist.
        ['other', 404, 'not_found', 'not_found', null],
      ]);
      expect(refusals.none.headers['www-authenticate']).toBe('Bearer');
      expect(refusals.narrow.body.detail).toContain(scope);
    },
  );

  it.each(cases)('is there under /api/%s, ending "%s", for the right key', async (root, ending) => {
    const { status } = await facade.call(method, addressOf(root, path, ending, await newSubject()));
    expect(status).toBe(expected);
  });
});

describe('an object of another project', () => {
  it('is not found through a key of this one, whatever is asked of it', async () => {
    const url = `/api/projects/${facade.otherProjectId}/batch_exports/${subject.id}`;
    const authorization = `Bearer ${otherKey}`;
    expect((await facade.call('GET', url, undefined, { authorization })).status).toBe(404);
    expect((await facade.call('POST', `${url}/pause`, {}, { authorization })).status).toBe(404);
    expect((await facade.call('DELETE', url, undefined, { authorization })).status).toBe(404);
    expect((await facade.call('GET', `batch_exports/${subject.id}`)).status).toBe(200);
  });
});

describe('GET /api/projects', () => {
  it.each(endings)('lists the project of any valid key, ending "%s"', async (ending) => {
    const { key } = await facade.newKey(facade.projectId, ['query:read']);
    const answer = await facade.call('GET', `/api/projects${ending}`, undefined, {
      authorization: `Bearer ${key}`,
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      count: 1,
      next: null,
      previous: null,
      results: [{ id: facade.projectId, name: 'Shop', timezone: 'UTC', week_start_day: 'sunday' }],
    });
    expect(
      (await facade.call('GET', `/api/projects${ending}`, undefined, { authorization: '' })).status,
    ).toBe(401);
  });
});

describe('paths', () => {
  it.each([
    ['a project that is no decimal number', '/api/projects/0x1/batch_exports'],
    ['a project with leading zeros', '/api/projects/01/batch_exports'],
    ['an export id that is no UUID', 'batch_exports/1'],
    ['a run id that is no UUID', `batch_exports/${randomUUID()}/runs/1`],
    ['a path that is nowhere', 'batch_export'],
    ['a path that is nowhere in the whole service', '/nothing'],
  ])('answer 404 to %s', async (_, path) => {
    const { status, body } = await facade.call('GET', path);
    expect([status, body.type]).toEqual([404, 'not_found']);
  });

  it.each([
    ['PUT', 'batch_exports/', 'GET, HEAD, POST'],
    ['PATCH', 'batch_exports/x/pause/', 'POST'],
    ['POST', '/api/projects/', 'GET, HEAD'],
    ['DELETE', '/healthz', 'GET, HEAD'],
  ] as const)('answer 405 to %s %s and name what is allowed', async (method, path, allow) => {
    const { status, headers, body } = await facade.call(method, path);
    expect([status, headers.allow, body.code]).toEqual([405, allow, 'method_not_allowed']);
  });
});
