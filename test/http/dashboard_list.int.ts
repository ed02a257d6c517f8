import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createDashboard, namesIn } from './dashboard_requests.ts';
import { createDashboardUser } from './dashboard_users.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

describe('the list of dashboards', () => {
  let lister: Awaited<ReturnType<typeof createDashboardUser>>;
  const root = () => `http://localhost/api/environments/${api.otherProjectId}/dashboards/`;
  const at = (query: string) =>
    lister.call('GET', `/api/environments/${api.otherProjectId}/dashboards/${query}`);

  beforeAll(async () => {
    lister = await createDashboardUser(api, 'lister', { projectId: api.otherProjectId });
    for (const [name, pinned] of [
      ['beta', false],
      ['Zeta', true],
      ['Alpha', false],
      ['alpha', false],
      ['Eta', true],
    ] as const)
      await lister.call('POST', `/api/projects/${api.otherProjectId}/dashboards`, { name, pinned });
  });

  it('has pinned dashboards first, then by name ignoring case, then by id', async () => {
    const { status, body } = await at('');
    expect([status, body]).toMatchObject([200, { count: 5, next: null, previous: null }]);
    expect(Object.keys(body)).toEqual(['count', 'next', 'previous', 'results']);
    expect(namesIn(await at(''))).toEqual(['Eta', 'Zeta', 'Alpha', 'alpha', 'beta']);
  });

  it.each([
    ['?limit=2', ['Eta', 'Zeta'], '?limit=2&offset=2', null],
    ['?limit=2&offset=2', ['Alpha', 'alpha'], '?limit=2&offset=4', '?limit=2'],
    ['?limit=2&offset=4', ['beta'], null, '?limit=2&offset=2'],
    ['?limit=2&offset=1', ['Zeta', 'Alpha'], '?limit=2&offset=3', '?limit=2'],
    ['?limit=5', ['Eta', 'Zeta', 'Alpha', 'alpha', 'beta'], null, null],
    ['?offset=4', ['beta'], null, '?limit=100'],
    ['?limit=3&offset=9', [], null, '?limit=3&offset=6'],
  ])('is paged with exact links: %s', async (query, names, next, previous) => {
    const response = await at(query);
    const link = (part: string | null) => (part === null ? null : root() + part);
    expect(response.body).toMatchObject({ count: 5, next: link(next), previous: link(previous) });
    expect(namesIn(response)).toEqual(names);
  });

  it.each([
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1.5', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=x', 'offset'],
  ])('rejects %s', async (query, attr) => {
    const { status, body } = await at(`?${query}`);
    expect([status, body]).toMatchObject([400, { type: 'validation_error', attr }]);
  });

  it('accepts a limit of 1000, and is the same below both roots with and without a trailing slash', async () => {
    const responses = [];
    for (const project of ['environments', 'projects'])
      for (const suffix of ['', '/'])
        responses.push(
          await lister.call('GET', `/api/${project}/${api.otherProjectId}/dashboards${suffix}?limit=1000`),
        );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
  });

  it('has no dashboard of another project, and gives no access to one', async () => {
    const id = await createDashboard(api, { name: 'Only in the shop' });
    expect(namesIn(await at('?limit=1000'))).not.toContain('Only in the shop');
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { name: 'Taken over' }],
      ['PATCH', { deleted: false }],
      ['DELETE', undefined],
    ] as const) {
      const below = `/api/projects/${api.otherProjectId}/dashboards/${id}`;
      expect((await lister.call(method, below, body)).status).toBe(404);
      expect((await lister.call(method, `dashboards/${id}`, body)).status).toBe(404);
    }
    expect((await api.call('GET', `dashboards/${id}`)).body.name).toBe('Only in the shop');
  });
});
