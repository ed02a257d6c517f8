import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

// Queries as analysts write them, after the documentation and tutorials of the reference product, from outside.

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select $1, gen_random_uuid(), 'bought', 'user ' || n, jsonb_build_object('price', n, 'list', array[n, n + 1]),
       timestamptz '2026-11-20 10:00:00+00' + n * interval '1 minute' from generate_series(1, 3) n`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.persons (team_id, id, properties, created_at)
     select $1, gen_random_uuid(), jsonb_build_object('name', name, 'email', name || '@example.com'), now() from unnest(array['Ann', 'Bob', 'Cid']) name`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, is_deleted)
     select $1, 'user ' || n, id, n = 3 from (select id, row_number() over (order by properties ->> 'name') n from public.persons where team_id = $1) p`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id)
     select team_id, 5, 'Paying', id from public.persons where properties ->> 'name' <> 'Bob'
     union all select $1, 5, 'Paying', id from public.persons`,
    [api.otherProjectId],
  );
  await api.database.pool.query(
    `insert into public.session_replay_events (team_id, session_id, distinct_id, min_first_timestamp, max_last_timestamp, click_count)
     values ($1, 's1', 'user 1', '2026-11-20 10:00Z', '2026-11-20 10:05Z', 7)`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const run = async (query: object): Promise<Record<string, unknown>> => {
  const { status, body } = await api.call('POST', `/api/projects/${api.projectId}/query/`, { query });
  return { status, ...body };
};
const select = (query: string): Promise<Record<string, unknown>> => run({ kind: 'DialectQuery', query });

const ids = `with b as (select arrayJoin(['c1', 'c2', 'c3']) as id), s as (select 'c2' as id, 5 as n)`;

describe('a query as analysts write it returns', () => {
  it.each<readonly [query: string, rows: readonly (readonly unknown[])[]]>([
    // Columns of rows that an outer join did not match.
    [`${ids} select count() from b left join s on s.id = b.id where empty(s.id)`, [[2]]],
    [`${ids} select count() from b left join s on s.id = b.id where notEmpty(s.id)`, [[1]]],
    [`${ids} select count() from b left join s on s.id = b.id where s.id = ''`, [[2]]],
    [`${ids} select count() from b left join s on s.id = b.id where s.id != ''`, [[1]]],
    [`${ids} select count() from b left join s on s.id = b.id where s.n = 0`, [[2]]],
    [`${ids} select count() from b left join s on s.id = b.id where s.id is null`, [[2]]],
    [`${ids} select count(s.id), count() from b left join s on s.id = b.id`, [[1, 3]]],
    [
      `${ids} select b.id, coalesce(s.id, '-') from b left join s on s.id = b.id order by b.id`,
      [
        ['c1', '-'],
        ['c2', 'c2'],
        ['c3', '-'],
      ],
    ],
    [`${ids} select count() from s right join b on s.id = b.id where empty(s.id)`, [[2]]],
    [
      `${ids} select count() from (select b.id as b, s.id as s from b left join s on s.id = b.id) where empty(s)`,
      [[2]],
    ],
    [`${ids} select count() from b left join s on s.id = b.id where nullIf(s.id, 'c2') = ''`, [[0]]],
    [
      `${ids} select count() from b left join s on s.id = b.id where (case when s.n = 5 then null else s.id end) = ''`,
      [[0]],
    ],
    [
      `${ids} select b.id, max(s.id) = '' from b left join s on s.id = b.id group by b.id having any(s.id) = '' order by 1`,
      [
        ['c1', true],
        ['c3', true],
      ],
    ],
    // What a null value is not.
    [`select null like null, null not like null, not (null like null)`, [[true, false, false]]],
    [
      `select x like y, x not like y from (select nullIf('a', 'a') as x, nullIf('b', 'b') as y)`,
      [[true, false]],
    ],
    [`select toFloatOrDefault(null, 7.), arrayAvg(arrayFilter(x -> x > 9, [1]))`, [[7, 0]]],
    // Times and intervals.
    [`select to_char(toDateTime('2023-01-01 13:45:32'), '%Y-%m-%d')`, [['2023-01-01']]],
    [
      `select toString(toDateTime('2023-01-01 00:00:00') + make_interval(1, 2, 3, 4, 5, 6))`,
      [['2024-03-04 04:05:06']],
    ],
    [`select date_part('dow', toDate('2024-03-10')), date_part('dow', toDate('2024-03-11'))`, [[7, 1]]],
    [
      `select toString(toStartOfInterval(toDateTime('2024-03-05 10:11:12'), interval 1 hour, toDateTime('2024-03-05 00:05:00')))`,
      [['2024-03-05 10:05:00']],
    ],
    [
      `select toString(toDate('2024-01-01') + number) from numbers(dateDiff('day', toDate('2024-01-01'), toDate('2024-01-03')) + 1)`,
      [['2024-01-01'], ['2024-01-02'], ['2024-01-03']],
    ],
    // Aggregates.
    [`select any(x), anyLast(x) from (select number as x from numbers(4) order by x desc)`, [[3, 0]]],
    [`select json_agg(x) from (select arrayJoin([1, 2]) as x order by x)`, [['[1,2]']]],
    [
      `select sumMap(k, v), maxMap(k, v) from (select ['a', 'b'] as k, [1, 2] as v union all select ['a'], [5])`,
      [
        [
          [
            ['a', 'b'],
            [6, 2],
          ],
          [
            ['a', 'b'],
            [5, 2],
          ],
        ],
      ],
    ],
    [`select percentile_cont(0.5) within group (order by x) from (select arrayJoin([1, 2, 4]) as x)`, [[2]]],
    [
      `select string_agg(x, ',') within group (order by y desc) from (select 'a' as x, 1 as y union all select 'b', 2)`,
      [['b,a']],
    ],
    [
      `select y, sumForEach(x) from (select [1, 2] as x, 1 as y union all select [3], 2 union all select [9], 2) group by y order by y`,
      [
        [1, [1, 2]],
        [2, [12]],
      ],
    ],
    [`select sumForEachIf(x, y = 2) from (select [1, 2] as x, 1 as y union all select [3], 2)`, [[[3]]]],
    [
      `select sumArgMax(x, y), countArgMin(x, y) from (select 1 as x, 2 as y union all select 5, 3 union all select 7, 3)`,
      [[12, 1]],
    ],
    [`select avgMap(x) from (select arrayJoin([map('a', 1), map('a', 2)]) as x)`, [[{ a: 1.5 }]]],
    [
      `select distinct a from (select 1 as a, 2 as b union all select 3, 1 union all select 1, 9) order by b + 0`,
      [[3], [1]],
    ],
    [
      `select distinct a from (select 1 as a, 2 as b union all select 3, 5 union all select 1, 9) order by b desc limit 1`,
      [[1]],
    ],
    // Tuples and documents.
    [
      `select a, arrayZip((sumMap(g.1, g.2) as x).1, x.2) as r from (
         select a, groupArray((b, n)) as g from (select number % 2 as a, number % 3 as b, count() as n from numbers(5) group by a, b) group by a
       ) group by a order by a`,
      [
        [
          0,
          [
            [0, 1],
            [1, 1],
            [2, 1],
          ],
        ],
        [
          1,
          [
            [0, 1],
            [1, 1],
          ],
        ],
      ],
    ],
    [`select [(1, 'a'), (2, 'b')].2, [(1, 'a')].1[1]`, [[['a', 'b'], 1]]],
    [`select 1 in tuple(1, 2), 3 in tuple(1, 2), 'a' not in tuple('b')`, [[true, false, true]]],
    [`select JSONExtract('{"a":[1,"x"]}', 'a', 'Tuple(Int64, String)').2`, [['x']]],
    [`select extractURLParameters('https://a.de/?utm=x&b=2#top')`, [[['utm=x', 'b=2']]]],
    [`select properties.list[1], properties.list.2 from events order by timestamp limit 1`, [['1', '2']]],
    // Tables of the source as they are stored, and cohorts.
    [
      `select distinct_id, is_deleted, version from raw_person_distinct_ids order by distinct_id`,
      [
        ['user 1', false, 0],
        ['user 2', false, 0],
        ['user 3', true, 0],
      ],
    ],
    [
      `select session_id, toString(min_first_timestamp), click_count from raw_session_replay_events`,
      [['s1', '2026-11-20 10:00:00', 7]],
    ],
    [
      `select count(), uniq(person_id), any(cohort_name) from cohort_people where cohort_id = 5`,
      [[2, 2, 'Paying']],
    ],
    [`select count() from static_cohort_people`, [[2]]],
    [`select properties.name from persons where id in cohort 5 order by 1`, [['Ann'], ['Cid']]],
    [`select properties.name from persons where id not in cohort 'Paying'`, [['Bob']]],
    [`select distinct_id from events where person_id in cohort 5`, [['user 1']]],
    [`select countIf(person_id in cohort 5), countIf(person_id not in cohort 5) from events`, [[1, 2]]],
  ])('%s', async (query, rows) => {
    expect(await select(query)).toMatchObject({ status: 200, results: rows });
  });
});

describe('a cohort that no person is in', () => {
  it.each([
    [`select count() from events where person_id in cohort 6`, '6', 'line 1, column 54'],
    [`select 1\nfrom persons where id not in cohort 'Payng'`, 'Payng', 'line 2, column 37'],
  ])('is an error with its position: %s', async (query, cohort, position) => {
    const { status, code, attr, detail } = await select(query);
    expect([status, code, attr]).toEqual([400, 'dialect_error', 'query__query']);
    expect(detail).toContain(`No person of this project is in the cohort ${cohort}. (${position})`);
  });
});

describe('the channel of a session', () => {
  it.each<readonly [Readonly<Record<string, string>>, string]>([
    [{ utm_source: 'google', utm_medium: 'cpc' }, 'Paid Search'],
    [{ gclid: 'x' }, 'Paid Search'],
    [{ utm_campaign: 'summer cross-network', utm_medium: 'cpc' }, 'Cross Network'],
    [{ utm_source: 'Facebook', utm_medium: 'paid_social' }, 'Paid Social'],
    [{ utm_medium: 'paid', fbclid: 'x' }, 'Paid Social'],
    [{ utm_medium: 'cpc', utm_campaign: 'eshopping' }, 'Paid Shopping'],
    [{ utm_medium: 'cpc', $referring_domain: 'm.youtube.com' }, 'Paid Video'],
    [{ utm_medium: 'cpc' }, 'Paid Unknown'],
    [{ $referring_domain: '$direct' }, 'Direct'],
    [{ $referring_domain: '$direct', utm_source: '(direct)' }, 'Direct'],
    [{ $referring_domain: 'www.google.de' }, 'Organic Search'],
    [{ $referring_domain: 'mail.google.com' }, 'Email'],
    [{ $referring_domain: 't.co' }, 'Organic Social'],
    [{ utm_source: 'newsletter', utm_medium: 'email' }, 'Email'],
    [{ utm_medium: 'affiliate' }, 'Affiliate'],
    [{ utm_medium: 'banner' }, 'Display'],
    [{ utm_medium: 'push', $referring_domain: '$direct' }, 'Push'],
    [{ $referring_domain: 'flask.example' }, 'Referral'],
    [{ utm_source: '' }, 'Unknown'],
  ])('%j is %s', async (properties, channel) => {
    const session = `session of ${channel} ${JSON.stringify(properties)}`;
    await api.database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       select $1, gen_random_uuid(), '$pageview', 'visitor', case n when 1 then $2::jsonb else '{"utm_source": "bing"}' end
         || jsonb_build_object('$session_id', $3::text), timestamptz '2026-10-20 10:00Z' + n * interval '1 minute'
       from generate_series(1, $4) n`,
      [
        api.projectId,
        properties,
        session,
        'utm_source' in properties && properties.utm_source !== '' ? 2 : 1,
      ],
    );
    expect(
      await run({
        kind: 'DialectQuery',
        query:
          'select $channel_type, events.session.$channel_type from sessions join events on events.$session_id = session_id where session_id = {session} limit 1',
        values: { session },
      }),
    ).toMatchObject({ status: 200, results: [[channel, channel]] });
  });
});

describe('a query that cannot be answered says why', () => {
  it.each([
    [
      'select events.x from (select 1 as x) as t',
      'Unable to resolve field: events. The table events is not in FROM.',
    ],
    ['select properties.list[0] from events', 'SQL indexes start from one, not from zero.'],
    ['select properties.list.0 from events', 'SQL indexes start from one, not from zero.'],
    ["select split_part('a', '.', 0)", 'count from one'],
    ["select arrayReduce('nonsense', [1])", "'nonsense' is not an aggregate."],
    ["select arrayReduce('lower', ['a'])", "'lower' is not an aggregate."],
    ["select arrayReduce(concat('su', 'm'), [1])", 'expects the name of an aggregate as a string'],
    ['select mapFilter(k -> k, map())', 'takes a key and a value'],
    ['select sumForEach(x) over () from (select [1] as x)', 'does not support OVER'],
    ['select sumForEachMap(x) from (select [1] as x)', 'Unsupported function call'],
    ['select number from numbers(1.5)', 'numbers() takes one or two integers.'],
  ])('%s', async (query, message) => {
    expect(await select(query)).toMatchObject({
      status: 400,
      detail: expect.stringContaining(message),
    });
  });
});

describe('a column with a label', () => {
  it('sorts events in the direction behind it', async () => {
    const shown = async (direction: string): Promise<unknown> => {
      const { results } = await run({
        kind: 'EventsQuery',
        after: '2026-11-01',
        select: ['distinct_id -- Person', 'timestamp'],
        orderBy: [`distinct_id -- Person ${direction}`],
      });
      return (results as unknown[][]).map(([name]) => name);
    };
    expect(await shown('DESC')).toEqual(['user 3', 'user 2', 'user 1']);
    expect(await shown('asc')).toEqual(['user 1', 'user 2', 'user 3']);
    const named = await run({
      kind: 'EventsQuery',
      after: '2026-11-01',
      select: ['person_display_name -- Person'],
      orderBy: ['person_display_name -- Person DESC'],
    });
    expect((named.results as unknown[]).length).toBe(3);
    expect(JSON.stringify(named.results)).toMatch(/user 3.*Bob.*Ann/);
  });

  it('sorts actors in the direction behind it', async () => {
    const { status, results } = await run({
      kind: 'ActorsQuery',
      select: ['person_display_name -- Person', 'id'],
      orderBy: ['person_display_name -- Person DESC'],
    });
    expect(status).toBe(200);
    expect(JSON.stringify(results)).toMatch(/Cid.*Bob.*Ann/);
  });
});

describe('what a query cost is returned on request by', () => {
  const series = [{ kind: 'EventsNode', event: 'bought' }];
  const dateRange = { date_from: '2026-11-19', date_to: '2026-11-21' };
  it.each([
    { kind: 'TrendsQuery', series, dateRange },
    { kind: 'FunnelsQuery', series: [...series, ...series], dateRange },
    { kind: 'EventsQuery', after: '2026-11-01', select: ['*', 'person'] },
    { kind: 'ActorsQuery', select: ['person'] },
  ])('$kind', async (query) => {
    const plain = await run(query);
    expect(plain).not.toHaveProperty('explain');
    const explained = await run({ ...query, explain: true });
    expect(explained).toMatchObject({
      status: 200,
      results: plain.results,
      is_cached: false,
      explain: {
        planning_seconds: expect.any(Number),
        execution_seconds: expect.any(Number),
        plan: { step: expect.any(String), steps: expect.any(Array) },
      },
    });
    expect(JSON.stringify(explained.explain)).not.toMatch(/bought|team_id|public/);
    expect(await run({ ...query, explain: true })).toMatchObject({
      is_cached: true,
      explain: explained.explain,
    });
    expect(await run({ ...query, explain: 'yes' })).toMatchObject({ status: 400, attr: 'query__explain' });
  });
});
