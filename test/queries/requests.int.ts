import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setVariable } from '../../src/queries/variables.ts';
import { openQueryHarness, type QueryHarness } from './query_harness.ts';
import { statement } from './fake_kind.ts';

let harness: QueryHarness;
beforeAll(async () => {
  harness = await openQueryHarness();
});
afterAll(() => harness.close());

describe('a request', () => {
  const query = statement('select 1');
  it.each([
    [{ query, colour: 1 }, 'colour'],
    [{ query: { ...query, colour: 1 } }, 'query__colour'],
    [{ query: { kind: 'InsightVizNode', source: { ...query, colour: 1 } } }, 'query__source__colour'],
    [{ query: { kind: 'InsightVizNode' } }, 'query__source'],
    [{ query: { ...query, statement: 5 } }, 'query__statement'],
    [{ query: { kind: 'StatementQuery' } }, 'query__statement'],
    [{ query: { kind: 'NoSuchQuery' } }, 'query__kind'],
    [{ query: {} }, 'query__kind'],
    [{ query: 'select 1' }, 'query'],
    [{}, 'query'],
    [{ query: statement('') }, 'query__statement'],
    [{ query, refresh: 'sometimes' }, 'refresh'],
    [{ query, refresh: true }, 'refresh'],
    [{ query, async: 'yes' }, 'async'],
    [{ query, client_query_id: '' }, 'client_query_id'],
    [{ query, client_query_id: 'x'.repeat(201) }, 'client_query_id'],
    [{ query, client_query_id: 'draft_sql' }, 'client_query_id'],
    [{ query, filters_override: { breakdown: 'x' } }, 'filters_override__breakdown'],
    [{ query, filters_override: { properties: ['bad'] } }, 'filters_override__properties__0'],
    [{ query, variables_override: { country: 'DE' } }, 'variables_override__country'],
    [{ query, variables_override: { country: { value: 'DE' } } }, 'variables_override__country'],
  ])('%j is rejected for %s', async (body, attr) => {
    const response = await harness.server.call('POST', 'query', body);
    expect([response.status, response.body]).toMatchObject([400, { type: 'validation_error', attr }]);
  });

  it('can have null for omitted fields', async () => {
    const nulls = {
      refresh: null,
      async: null,
      client_query_id: null,
      filters_override: null,
      variables_override: null,
    };
    expect((await harness.server.post(query, nulls)).status).toBe(200);
  });

  it('is 503 and not stored when Temporal is unreachable; blocking queries still run', async () => {
    const alone = await harness.addServer({
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '1s',
    });
    const runWithVariable = statement(`select '${randomUUID()}'`);
    const { status, body, headers } = await alone.post(runWithVariable, {
      refresh: 'async',
      client_query_id: 'never',
    });
    expect([status, body.code, headers['retry-after']]).toEqual([503, 'temporal_unreachable', '5']);
    expect((await alone.call('GET', 'query/never')).status).toBe(404);
    expect((await alone.post(runWithVariable)).status).toBe(200);
  });
});

describe('filters_override', () => {
  it('reaches the kind and has a separate cached result', async () => {
    const query = statement('select $1::text');
    const responses = await Promise.all(
      ['-7d', '-30d'].map((date_from) => harness.server.post(query, { filters_override: { date_from } })),
    );
    expect(responses.map(({ body }) => body.results)).toEqual([[['-7d']], [['-30d']]]);
  });
});

describe('variables', () => {
  const query = (own: string | null = null) => statement('select $1::text', { variables: { country: own } });
  const runWithVariable = async (own: string | null, override?: object) => {
    const response = await harness.server.post(query(own), override && { variables_override: override });
    return response.status === 200 ? (response.body.results as string[][])[0]?.[0] : response.body;
  };

  it('come from the request, else from the query, else from the project', async () => {
    expect(await runWithVariable(null)).toMatchObject({
      code: 'unknown_variable',
      detail: expect.stringContaining('This project has no variable "country"'),
    });
    expect(await runWithVariable('FR')).toBe('FR');
    const { id } = await setVariable(harness.pool, {
      team_id: harness.projectId,
      code_name: 'country',
      default_value: 'DE',
    });
    expect(await runWithVariable(null)).toBe('DE');
    expect(await runWithVariable('FR')).toBe('FR');
    expect(await runWithVariable('FR', { [id]: { value: 'IT' } })).toBe('IT');
    expect(await runWithVariable('FR', { country: { value: 'ES' } })).toBe('ES');
    expect(await runWithVariable('FR', { x: { variableId: id, code_name: 'country', value: 'PL' } })).toBe(
      'PL',
    );
    expect(await runWithVariable('FR', { country: { value: 'PL', isNull: true } })).toBeNull();
    await setVariable(harness.pool, {
      team_id: harness.projectId,
      code_name: 'country',
      default_value: 'AT',
    });
    expect(await runWithVariable(null)).toBe('AT');
  });

  it('of another project are unknown', async () => {
    await setVariable(harness.pool, {
      team_id: harness.otherProjectId,
      code_name: 'elsewhere',
      default_value: 1,
    });
    const { body } = await harness.server.post(statement('select $1', { variables: { elsewhere: null } }));
    expect(body.code).toBe('unknown_variable');
  });
});

it('the API is described', async () => {
  const { body } = await harness.server.call('GET', '/api/schema');
  const paths = body.paths as Record<string, Record<string, unknown>>;
  for (const root of ['projects', 'environments']) {
    expect(Object.keys(paths[`/api/${root}/{project_id}/query`] ?? {})).toEqual(['post']);
    expect(Object.keys(paths[`/api/${root}/{project_id}/query/{id}`] ?? {}).sort()).toEqual([
      'delete',
      'get',
    ]);
  }
});
