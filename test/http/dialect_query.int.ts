import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportBody, openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
});
afterAll(() => api.close());

const create = (dialect_query: string, model = 'events') =>
  api.call('POST', 'batch_exports/', exportBody({ model, dialect_query }));
const versionsOf = async (id: string): Promise<number> =>
  (
    await api.database.pool.query<{ version: number }>(
      'select max(version) as version from exportd.destination_configs where batch_export_id = $1',
      [id],
    )
  ).rows[0]?.version ?? 0;

describe('the query of a batch export', () => {
  it('is returned with the columns that it selects', async () => {
    const dialect_query = `select uuid, properties.$browser as browser, toFloat(properties.price) * 2 as "twice",
      toDate(timestamp) day, upper(event), person.properties from events where event != '$pageview'`;
    const { status, body } = await create(dialect_query.replace(' day', ' as day'));
    expect([status, body]).toMatchObject([
      201,
      {
        dialect_query: expect.stringContaining('select uuid, properties.$browser'),
        schema: {
          fields: [
            { alias: 'uuid', expression: 'uuid', type: 'uuid' },
            { alias: 'browser', expression: 'properties.$browser', type: 'text' },
            { alias: 'twice', expression: 'toFloat(properties.price) * 2', type: 'double' },
            { alias: 'day', expression: 'toDate(timestamp)', type: 'date' },
            { alias: 'upper(event)', expression: 'upper(event)', type: 'text' },
            { alias: 'properties', expression: 'person.properties', type: 'json' },
          ],
          dialect_query: expect.stringMatching(/^SELECT uuid, .* FROM events WHERE event != '\$pageview'$/),
        },
      },
    ]);
    // Sending the response back changes nothing.
    const path = `batch_exports/${String(body.id)}/`;
    const again = await api.call('PATCH', path, body);
    expect([again.status, again.body.schema, await versionsOf(String(body.id))]).toEqual([
      200,
      body.schema,
      1,
    ]);
  });

  it('is changed and removed in new versions, for the runs created from then on', async () => {
    const id = await api.createExport();
    const path = `batch_exports/${id}/`;
    const patch = async (body: object) => {
      const response = await api.call('PATCH', path, body);
      const schema = response.body.schema as { fields: readonly { alias: string }[] } | null;
      return [response.status, schema?.fields.map(({ alias }) => alias) ?? null, await versionsOf(id)];
    };
    expect((await api.call('GET', path)).body).toMatchObject({ dialect_query: null, schema: null });
    expect(await patch({ dialect_query: 'select distinct_id from events' })).toEqual([
      200,
      ['distinct_id'],
      2,
    ]);
    expect(await patch({ destination: { config: { prefix: 'another' } } })).toEqual([
      200,
      ['distinct_id'],
      3,
    ]);
    expect(await patch({ name: 'Another' })).toEqual([200, ['distinct_id'], 3]);
    // The query must be valid for a new model.
    expect((await patch({ model: 'persons' }))[0]).toBe(400);
    expect(await patch({ model: 'persons', dialect_query: 'select distinct_id, id from persons' })).toEqual([
      200,
      ['distinct_id', 'id'],
      4,
    ]);
    expect(await patch({ dialect_query: null })).toEqual([200, null, 5]);
    expect(await patch({ dialect_query: '' })).toEqual([200, null, 5]);
    const dryRun = await api.call('POST', `${path}backfill/`, {
      dry_run: true,
      start_at: '2026-11-01T00:00:00Z',
      end_at: '2026-11-01T00:01:00Z',
    });
    expect(dryRun.status).toBe(200);
  });

  it('filters the rows that a dry run counts', async () => {
    await api.database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
       select $1, gen_random_uuid(), case when n < 4 then 'bought' else 'seen' end, 'd', t, t
       from generate_series(1, 10) n, lateral (select timestamptz '2026-11-01 00:00Z' + n * interval '1 second' as t) times`,
      [api.projectId],
    );
    const id = await api.createExport({ dialect_query: `select uuid from events where event = 'bought'` });
    const { body } = await api.call('POST', `batch_exports/${id}/backfill/`, {
      dry_run: true,
      start_at: '2026-11-01T00:00:00Z',
      end_at: '2026-11-01T00:05:00Z',
    });
    expect(body).toMatchObject({ rows: 3 });
  });
});

describe('a query that cannot be exported', () => {
  it.each([
    ['select uuid\nfrom events\nlimit 5', /LIMIT is not supported .*\(line 3, column 1\)\nlimit 5\n\^+/],
    ['select uuid from events order by timestamp', /ORDER BY is not supported/],
    ['select count() from events', /An aggregate is not supported .*column 8/],
    ['select event from events group by event', /GROUP BY is not supported/],
    ['select event from events where count() > 1', /aggregat/i],
    ['select event from events having event = 1', /HAVING is not supported/],
    ['select row_number() over () from events', /A window function is not supported/],
    ['select uuid from events qualify 1', /QUALIFY is not supported/],
    ['select uuid from persons', /The table `persons` is not available .*This batch export reads events/],
    ['select e.uuid from events e join persons p on p.id = e.person_id', /JOIN is not supported/],
    ['select uuid from (select uuid from events)', /A subquery is not supported/],
    ['select uuid from events where uuid in (select uuid from events)', /A subquery is not supported/],
    ['select uuid from events union all select uuid from events', /UNION ALL is not supported/],
    ['with x as (select 1) select uuid from events', /WITH is not supported/],
    ['select distinct event from events', /DISTINCT is not supported/],
    ['select uuid from events array join [1, 2] as n', /ARRAY JOIN is not supported/],
    ['select arrayJoin([1, 2]) from events', /arrayJoin\(\) is not supported/],
    ['select now() from events', /now\(\) is not supported .*\(line 1, column 8\)/],
    ['select uuid from events where timestamp > today() - 1', /today\(\) is not supported/],
    ['select session.$entry_pathname from events', /a session changes while its events arrive/],
    ['select group_0.properties from events', /a group changes after its events/],
    ['select uuid as a, event as A from events', /Two columns are named A/],
    ['select uuid, uuid from events', /Two columns are named uuid/],
    ['select uuid as `a\u001b[2Kb` from events', /A column name must not contain control characters/],
    ['select uuid as `a\nb` from events', /A column name must not contain control characters/],
    ['select uuid as `a\u202eb` from events', /A column name must not contain control characters/],
    ['select no_such from events', /Unable to resolve field: no_such .*\(line 1, column 8\)/],
    ['select uuid frm events', /line 1/],
    ['select {x} from events', /Unresolved placeholder/],
    ['select pg_sleep(1) from events', /Unsupported function/],
    ['select 1; drop table events', /line 1/],
    ['select properties.n + 1 from events', /Operator \+ requires numbers/],
    [`select '\\0' as nothing from events`, /U\+0000|line 1/],
    ['select 1', /FROM is missing/],
    ['select number from numbers(5)', /A table function is not supported|line 1/],
  ])('%s', async (query, message) => {
    const { status, body } = await create(query);
    expect([status, body.code, body.attr]).toEqual([400, 'dialect_error', 'dialect_query']);
    expect(body.detail).toMatch(message);
  });

  it('of persons is described by their columns', async () => {
    const { body } = await create('select event from persons', 'persons');
    expect(body.detail).toMatch(/Unable to resolve field: event/);
    expect((await create('select pdi.distinct_id from persons', 'persons')).body.detail).toMatch(
      /has the column distinct_id/,
    );
  });
});
