import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

// The forms of SELECT that analysts write and that were refused on 2026-11-28, by how often they occur: in most dashboards
// (A), in several sources (B), in one or two (C). Each has its answer, or its refusal with what to write instead.

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  const teams = [api.projectId, api.otherProjectId];
  await pool.query(`update exportd.projects set timezone = 'Europe/Berlin' where id = $1`, [api.projectId]);
  await pool.query(
    `insert into public.persons (team_id, id, properties, created_at)
     select team, ('00000000-0000-0000-0000-0000000000' || lpad(to_hex(16 * team % 240 + n), 2, '0'))::uuid,
       jsonb_build_object('email', name || '@ex.com'), timestamptz '2026-11-01Z' + n * interval '1 day'
     from unnest($1::integer[]) as team, unnest(array['ann', 'bob', 'cid']) with ordinality as person(name, n)`,
    [teams],
  );
  await pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id)
     select team_id, distinct_id, id from public.persons
     join (values ('ann@ex.com', 'ann'), ('ann@ex.com', 'anon'), ('bob@ex.com', 'bob')) as known(email, distinct_id)
       on properties ->> 'email' = email
     where team_id = any($1)`,
    [teams],
  );
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, elements_chain, timestamp)
     select team, gen_random_uuid(), name, distinct_id, properties::jsonb, chain, at::timestamptz
     from unnest($1::integer[]) as team,
       (values ('$identify', 'ann', '{"$anon_distinct_id": "anon"}', '', '2026-11-19T10:00:00Z'),
               ('bought', 'ann', '{"amount": 30, "ok": true, "plan": "pro", "$current_url": "https://www.ex.com/a?b=c", "$session_id": "s1"}', '', '2026-11-19T10:30:00Z'),
               ('bought', 'bob', '{"amount": 7.5, "ok": false, "plan": "free", "$current_url": "ex.com/b"}', '', '2026-11-19T23:30:00Z'),
               ('$autocapture', 'anon', '{"plan": "pro"}', 'a.link:href="/docs"text="Docs"attr_id="d";div:text="Top";button:text="Docs"', '2026-11-20T12:00:00Z'))
         as rows (name, distinct_id, properties, chain, at)`,
    [teams],
  );
  await pool.query(
    `insert into public.session_replay_events (team_id, session_id, distinct_id, min_first_timestamp, max_last_timestamp)
     select team, 's1', 'anon', '2026-11-19T10:00Z', '2026-11-19T10:40Z' from unnest($1::integer[]) as team`,
    [teams],
  );
  await pool.query(
    `insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id)
     select team_id, 5, 'Paying', id from public.persons where team_id = any($1) and properties ->> 'email' <> 'cid@ex.com'`,
    [teams],
  );
  await api.call('POST', 'actions/', { name: 'Bought', steps: [{ event: 'bought' }] });
});
afterAll(() => api.close());

const run = (query: string, filters?: object) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'DialectQuery', query, ...(filters && { filters }) },
  });

const rowsOf = async (query: string, filters?: object): Promise<unknown> => {
  const { body } = await run(query, filters);
  return body.detail ?? body.results;
};

type Class = 'A' | 'B' | 'C';
type Rows = readonly (readonly unknown[])[];

const tag = (...items: readonly unknown[]): readonly unknown[] => ['__hx_tag', ...items];

const answered: readonly (readonly [of: Class, query: string, rows: Rows, filters?: object])[] = [
  // Properties without a declared type.
  ['A', `select avg(properties.amount) from events`, [[18.75]]],
  ['A', `select sum(properties.amount) from events where event = 'bought'`, [[37.5]]],
  ['A', `select distinct_id from events where properties.amount > 10`, [['ann']]],
  ['A', `select distinct_id from events where properties.amount = 30`, [['ann']]],
  ['A', `select max(properties.amount * 2) from events`, [[60]]],
  ['A', `select distinct_id from events where properties.ok = true`, [['ann']]],
  ['A', `select countIf(coalesce(properties.ok, false)) from events`, [[1]]],
  ['A', `select sum(ifNull(properties.amount, 0)) from events`, [[37.5]]],
  // Persons.
  [
    'B',
    `select properties.email, is_identified from persons order by 1`,
    [
      ['ann@ex.com', true],
      ['bob@ex.com', false],
      ['cid@ex.com', false],
    ],
  ],
  ['B', `select countIf(persons.is_identified), count() from persons`, [[1, 3]]],
  [
    'B',
    `select event, person.is_identified from events where distinct_id = 'anon'`,
    [['$autocapture', true]],
  ],
  [
    'B',
    `select properties.email, persons.pdi.distinct_id from persons order by 2`,
    [
      ['ann@ex.com', 'ann'],
      ['ann@ex.com', 'anon'],
      ['bob@ex.com', 'bob'],
    ],
  ],
  [
    'B',
    `select events.pdi.distinct_id, p.properties.email from events join persons as p on p.id = events.person_id where event = 'bought' order by 1`,
    [
      ['ann', 'ann@ex.com'],
      ['bob', 'bob@ex.com'],
    ],
  ],
  // Recordings.
  [
    'B',
    `select person.properties.email, min_first_timestamp as start, recordingButton(session_id) from raw_session_replay_events`,
    [['ann@ex.com', '2026-11-19T11:00:00+01:00', tag('RecordingButton', 'sessionId', 's1')]],
  ],
  [
    'B',
    `select recording_button(session_id, 'active') from session_replay_events`,
    [[tag('RecordingButton', 'sessionId', 's1', 'recordingStatus', 'active')]],
  ],
  // What there is to read.
  [
    'B',
    `select column_name, data_type, is_nullable from system.information_schema.columns where table_name = 'persons' order by ordinal_position limit 3`,
    [
      ['id', 'UUID', false],
      ['created_at', 'DateTime', false],
      ['properties', 'JSON', false],
    ],
  ],
  [
    'B',
    `select t.table_type, count(distinct t.table_name), countIf(column_name = 'person.properties') from system.information_schema.tables as t
       join system.information_schema.columns as c on c.table_name = t.table_name group by 1 order by 1`,
    [
      ['information_schema', 2, 0],
      ['posthog', 9, 4],
      ['system', 1, 0],
    ],
  ],
  ['B', `select id, name, count from system.cohorts where not deleted`, [[5, 'Paying', 2]]],
  // JSON.
  [
    'B',
    `select kv.1 as key, count() from events array join JSONExtractKeysAndValues(properties, 'String') as kv group by key order by 2 desc, 1 limit 2`,
    [
      ['plan', 3],
      ['$current_url', 2],
    ],
  ],
  [
    'B',
    `select arrayJoin(JSONExtractKeysAndValues(properties, 'Float64')) as kv from events where distinct_id = 'ann' and event = 'bought'`,
    [[['ok', 1]], [['amount', 30]]],
  ],
  // Names of ClickHouse.
  [
    'B',
    `select sum(toFloat64OrNull(properties.amount)), toInt64OrNull('7'), toDateOrNull('x') from events`,
    [[37.5, 7, null]],
  ],
  // The SQL of insights.
  [
    'B',
    `select day, state from (select arraySort(groupUniqArray(toStartOfDay(timestamp))) as days,
         arrayMap(d -> if(indexOf(days, d) = 1, 'new', 'returning'), days) as states, arrayJoin(arrayZip(days, states)) as pair,
         toString(pair.1) as day, pair.2 as state from events where person.properties.email = 'ann@ex.com' group by person_id)
       order by day`,
    [
      ['2026-11-19 00:00:00', 'new'],
      ['2026-11-20 00:00:00', 'returning'],
    ],
  ],
  [
    'B',
    `select distinct_id, arrayJoin(groupArray(event)) as e from events group by distinct_id having e != '$identify' order by 1, 2`,
    [
      ['ann', 'bought'],
      ['anon', '$autocapture'],
      ['bob', 'bought'],
    ],
  ],
  [
    'B',
    `select groupUniqArray(event) as names, arrayJoin(arrayFilter(x -> x > 0, arrayMap((i, n) -> if(has(names, n), i, 0), [1, 2], ['bought', 'sold']))) as found from events`,
    [[['$autocapture', '$identify', 'bought'], 1]],
  ],
  [
    'B',
    `select arrayMap(n -> indexOf(arraySort(groupUniqArray(event)) as names, n), ['bought', 'sold']) as found, length(names) from events`,
    [[[3, 0], 3]],
  ],
  [
    'B',
    `select quantileExactInclusive(0.5)(toFloat(properties.amount)), quantilesExact(0, 1)(toFloat(properties.amount)) from events`,
    [[18.75, [7.5, 30]]],
  ],
  // Times and numbers.
  [
    'C',
    `select dateDiff(day, min(timestamp), max(timestamp)), dateDiff(HOUR, min(timestamp), max(timestamp)) from events`,
    [[1, 26]],
  ],
  [
    'C',
    `select dateAdd(day, 1, toDate('2026-02-28')), dateSub(month, 1, toDate('2026-03-31'))`,
    [['2026-03-01', '2026-02-28']],
  ],
  [
    'C',
    `select toString(now('Asia/Tokyo')) = toString(toTimeZone(now(), 'Asia/Tokyo')), toTypeName(now('Asia/Tokyo'))`,
    [[true, "DateTime64(6, 'Asia/Tokyo')"]],
  ],
  ['C', `select 1_000 + 1, 1_000.5`, [[1001, 1000.5]]],
  // Placeholders of dashboards.
  [
    'C',
    `select toString(dateTrunc({filters.interval}, timestamp)) as period, count() from events where {filters} group by period order by period`,
    [
      ['2026-11-19 00:00:00', 2],
      ['2026-11-20 00:00:00', 2],
    ],
  ],
  ['C', `select {filters.interval('week')}, {filters.interval}`, [['month', 'month']], { interval: 'month' }],
  [
    'C',
    `select {filters.breakdown(properties.plan AS 'plan')} as breakdown, count() from events where event = 'bought' group by breakdown order by 1`,
    [
      ['free', 1],
      ['pro', 1],
    ],
    { breakdownFilter: { breakdown: 'plan', breakdown_type: 'event' } },
  ],
  [
    'C',
    `select distinct_id from person_distinct_ids where {filters(person.created_at AS timestamp, person.properties.email AS 'email')} order by 1`,
    [['bob']],
    {
      dateRange: { date_from: '2026-11-03' },
      properties: [{ key: 'email', value: ['bob@ex.com', 'ann@ex.com'] }],
    },
  ],
  [
    'C',
    `select properties.email from persons where {filters}`,
    [['cid@ex.com']],
    {
      dateRange: { date_from: '2026-11-03' },
      properties: [{ type: 'person', key: 'email', operator: 'is_not', value: 'bob@ex.com' }],
    },
  ],
  // What only the reference product has.
  ['C', `select count() from events where matchesAction('Bought')`, [[2]]],
  ['C', `select sparkline(range(1, 4))`, [[tag('Sparkline', 'data', [1, 2, 3])]]],
  [
    'C',
    `select elements_chain_href, elements_chain_texts, elements_chain_ids, elements_chain_elements from events where event = '$autocapture'`,
    [['/docs', ['Docs', 'Top'], ['d'], ['a', 'button']]],
  ],
  // Regular expressions.
  [
    'C',
    `select extract(properties.$current_url, '^(?:https?://)?([^/?]+)'), extract(properties.$current_url, '^(?:https?://)?(?:www\\.)?([^/?]+)') from events where event = 'bought' order by 1`,
    [
      ['ex.com', 'ex.com'],
      ['www.ex.com', 'ex.com'],
    ],
  ],
  [
    'C',
    `select extract(properties.$current_url, '.*?b=(.*)') from events where distinct_id = 'ann' and event = 'bought'`,
    [['c']],
  ],
];

const refused: readonly (readonly [of: Class, query: string, says: string, instead: string])[] = [
  [
    'B',
    `select pdi.distinct_id from events join persons on persons.id = events.person_id`,
    'Ambiguous field: pdi is in events and persons. Qualify it, for example events.pdi.',
    `select events.pdi.distinct_id from events join persons on persons.id = events.person_id`,
  ],
  [
    'B',
    `select rowNumberInAllBlocks() from events`,
    'Use row_number() OVER (ORDER BY …), which counts from 1.',
    `select row_number() over (order by timestamp) - 1 from events`,
  ],
  [
    'B',
    `select count() from Events`,
    'Unknown table `Events`. Perhaps you meant `events`?',
    `select count() from events`,
  ],
  ['C', `select 'a' + 'b'`, 'Operator + ', `select 'a' || 'b', concat('a', 'b')`],
  [
    'C',
    `select number from numbers(3) order by number with fill`,
    'WITH FILL is not supported. Join numbers(n) to fill the gaps.',
    `select n.number, count(e.uuid) from numbers(3) as n left join events as e on toHour(e.timestamp) = n.number group by 1`,
  ],
  [
    'C',
    `with recursive n as (select 1 as i) select i from n`,
    'Write numbers(n) for a series, and one JOIN for each level of a tree.',
    `select number + 1 as i from numbers(3)`,
  ],
  [
    'C',
    `select <Sparkline data={[1, 2]} /> from events`,
    'Write sparkline([1, 2]) or recordingButton(session_id).',
    `select sparkline([1, 2]), recordingButton('s1')`,
  ],
  [
    'C',
    `select convertCurrency('USD', 'EUR', 1.0)`,
    'Exchange rates are not stored; multiply by a rate.',
    `select toFloat(properties.amount) * 0.9 from events`,
  ],
  [
    'C',
    `select person from events`,
    'Select one of its columns: id, created_at, properties, is_identified.',
    `select person.id, person.created_at, person.properties, person.is_identified from events`,
  ],
  [
    'C',
    `select organization.properties.name from events`,
    'Groups are called group_0 to group_4: group_0.properties.name.',
    `select group_0.properties.name from events`,
  ],
  [
    'C',
    `select * from raw_persons`,
    'The table `raw_persons` is not supported. Use persons.',
    `select * from persons`,
  ],
  [
    'C',
    `select retention(event = 'a', event = 'b') from events group by person_id`,
    'Use countIf(…) > 0 for each condition.',
    `select countIf(event = 'a') > 0, countIf(event = 'b') > 0 from events group by person_id`,
  ],
  [
    'C',
    `select sequenceMatch('(?1)(?2)')(timestamp, event = 'a', event = 'b') from events`,
    'Use windowFunnel(seconds)(timestamp, …), or a FunnelsQuery.',
    `select windowFunnel(3600)(timestamp, event = 'a', event = 'b') from events`,
  ],
  [
    'C',
    `select cityHash64(distinct_id) % 10 from events`,
    'PostgreSQL cannot compute this hash; use md5(…) instead.',
    `select md5(distinct_id) from events`,
  ],
  [
    'C',
    `select COUNTIF(event = 'bought') from events`,
    "Perhaps you meant 'countIf(...)'?",
    `select countIf(event = 'bought') from events`,
  ],
  [
    'C',
    `select if(event = 'a', 1, '0') from events`,
    'Convert them with toString(), toFloat(), toInt() or toDateTime().',
    `select if(event = 'a', toString(1), '0') from events`,
  ],
];

describe('a form of SELECT that was refused', () => {
  it.each(answered)('of class %s answers: %s', async (...[, query, rows, filters]) => {
    expect(await rowsOf(query, filters)).toEqual(rows);
  });

  it.each(refused)('of class %s is refused with what to write: %s', async (...[, query, says, instead]) => {
    const { status, body } = await run(query);
    expect([status, body.detail]).toEqual([400, expect.stringContaining(says)]);
    expect((await run(instead)).body.detail).toBeUndefined();
  });

  it('has an answer in most cases', () => {
    const counts = (['A', 'B', 'C'] as const).map((of) => [
      answered.filter(([one]) => one === of).length,
      refused.filter(([one]) => one === of).length,
    ]);
    expect(counts).toEqual([
      [8, 0],
      [18, 3],
      [14, 13],
    ]);
  });
});
