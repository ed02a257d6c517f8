import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportd } from '../cli/command_line.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

// Actions from outside: how they are defined, and which events match them.

interface Row {
  readonly event: string;
  readonly url: string | null;
  readonly plan: string;
  readonly person: 1 | 2;
}

/** Every event with every URL, plan and person. */
const rows: readonly Row[] = ['$pageview', 'bought', 'left'].flatMap((event) =>
  [null, '', 'https://shop.test/buy', 'https://shop.test/Buy', '/buy?a=1', '/b_y'].flatMap((url) =>
    ['pro', 'free'].flatMap((plan) => ([1, 2] as const).map((person) => ({ event, url, plan, person }))),
  ),
);
const personId = (person: number): string => `00000000-0000-0000-0000-00000000000${person}`;

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select $1, gen_random_uuid(), event, 'd' || person, ('00000000-0000-0000-0000-00000000000' || person)::uuid,
       jsonb_strip_nulls(jsonb_build_object('$current_url', url, 'plan', plan, 'amount', person * 100)), '2026-11-10T12:00:00Z'
     from jsonb_to_recordset($2) as x(event text, url text, plan text, person integer)`,
    [api.projectId, JSON.stringify(rows)],
  );
  await api.database.pool.query(
    `insert into public.persons (team_id, id, properties)
     select $1, ('00000000-0000-0000-0000-00000000000' || n)::uuid, jsonb_build_object('name', 'P' || n)
     from generate_series(1, 2) n`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.cohort_people (team_id, cohort_id, person_id) values ($1, 5, $2)`,
    [api.projectId, personId(1)],
  );
});
afterAll(() => api.close());

let names = 0;
async function created(steps: readonly object[], more: object = {}) {
  names += 1;
  const response = await api.call('POST', 'actions/', { name: `Action ${names}`, steps, ...more });
  return { status: response.status, body: response.body, id: Number(response.body.id) };
}

const query = async (text: string, more: object = {}) => {
  const { status, body } = await api.call('POST', 'query/', {
    query: { kind: 'DialectQuery', query: text },
    ...more,
  });
  return { status, body, results: body.results as readonly (readonly unknown[])[] };
};
const countOf = async (condition: string): Promise<unknown> =>
  (await query(`select count() from events where ${condition}`)).results[0]?.[0];

const filter = (key: string, value: unknown, more: object = {}) => ({ type: 'event', key, value, ...more });

describe('events match an action', () => {
  it.each<readonly [what: string, steps: readonly object[], matches: (row: Row) => boolean]>([
    ['by name', [{ event: 'bought' }], ({ event }) => event === 'bought'],
    ['of any name', [{ event: null }], () => true],
    ['of any name and URL, if they are empty', [{ event: '', url: '', url_matching: 'exact' }], () => true],
    [
      'of one of several steps, each once',
      [{ event: 'bought' }, { event: 'left' }, { properties: [filter('plan', 'pro')] }],
      ({ event, plan }) => event !== '$pageview' || plan === 'pro',
    ],
    [
      'by a part of the URL, in its case',
      [{ event: '$pageview', url: '/buy', url_matching: 'contains' }],
      ({ event, url }) => event === '$pageview' && url?.includes('/buy') === true,
    ],
    ['by default by a part', [{ url: '/buy' }], ({ url }) => url?.includes('/buy') === true],
    ['by a part with wildcards', [{ url: 'shop%uy' }], ({ url }) => /shop.*uy/.test(url ?? '')],
    ['by the whole URL', [{ url: '/b_y', url_matching: 'exact' }], ({ url }) => url === '/b_y'],
    [
      'by a regular expression',
      [{ url: '/[bB]uy$', url_matching: 'regex' }],
      ({ url }) => /\/[bB]uy$/.test(url ?? ''),
    ],
    [
      'of any URL, if it is null',
      [{ event: 'left', url: null, url_matching: 'exact' }],
      ({ event }) => event === 'left',
    ],
    [
      'by properties, all of which match',
      [
        {
          event: 'bought',
          properties: [
            filter('plan', ['pro', 'other']),
            filter('$current_url', null, { operator: 'is_not_set' }),
          ],
        },
      ],
      ({ event, plan, url }) => event === 'bought' && plan === 'pro' && url === null,
    ],
    [
      'by properties of the person',
      [{ properties: [{ type: 'person', key: 'name', operator: 'exact', value: 'P2' }] }],
      ({ person }) => person === 2,
    ],
    [
      'by a cohort of the person',
      [{ event: 'left', properties: [{ type: 'cohort', key: 'id', operator: 'in', value: 5 }] }],
      ({ event, person }) => event === 'left' && person === 1,
    ],
    [
      'by an expression',
      [{ properties: [{ type: 'hogql', key: "event in ('left', 'bought') and properties.plan = 'free'" }] }],
      ({ event, plan }) => event !== '$pageview' && plan === 'free',
    ],
    [
      'by an expression that needs the inferred type of a property',
      [{ event: 'left', properties: [{ type: 'hogql', key: 'properties.amount > 150' }] }],
      ({ event, person }) => event === 'left' && person === 2,
    ],
    [
      'without the fields of elements that PostHog sends as null',
      [
        {
          event: 'bought',
          properties: [],
          selector: null,
          tag_name: null,
          text: null,
          text_matching: null,
          href: null,
          href_matching: 'contains',
          url: null,
          url_matching: 'contains',
        },
      ],
      ({ event }) => event === 'bought',
    ],
  ])('%s', async (_, steps, matches) => {
    const { status, id, body } = await created(steps);
    expect(status).toBe(201);
    const expected = rows.filter(matches).length;
    expect(await countOf(`matchesAction(${id})`)).toBe(expected);
    expect(await countOf(`not matchesAction('${String(body.name)}')`)).toBe(rows.length - expected);
    const trend = await api.call('POST', 'query/', {
      query: {
        kind: 'TrendsQuery',
        series: [{ kind: 'ActionsNode', id }],
        dateRange: { date_from: '2026-11-10', date_to: '2026-11-10' },
      },
    });
    expect(trend.body.results).toMatchObject([
      { data: [expected], label: body.name, action: { id, type: 'actions', name: body.name } },
    ]);
    const listed = await api.call('POST', 'query/', {
      query: { kind: 'EventsQuery', select: ['count()'], actionId: id, after: 'all' },
    });
    expect(listed.body.results).toEqual([[expected]]);
  });
});

describe('a condition in the dialect', () => {
  let id: number;
  beforeAll(async () => {
    ({ id } = await created([{ event: 'bought', properties: [filter('plan', 'pro')] }]));
  });

  it.each<readonly [text: (id: number) => string, results: readonly (readonly unknown[])[]]>([
    // 6 URLs and 2 persons.
    [(id) => `select countIf(matchesAction(${id})), count() from events`, [[12, 72]]],
    [
      (id) => `select matchesAction(${id}) as it, count() from events group by it order by it`,
      [
        [false, 60],
        [true, 12],
      ],
    ],
    // Names of the query hide neither the columns of events nor their properties.
    [
      (id) =>
        `with 'x' as properties select distinct 'left' as event, 1 as plan from events where matchesAction(${id})`,
      [['left', 1]],
    ],
    [
      (id) =>
        `select p.properties.name as name, count() from events as e join persons as p on p.id = e.person_id
           where matchesAction(${id}) group by name order by name`,
      [
        ['P1', 6],
        ['P2', 6],
      ],
    ],
    [
      (id) =>
        `select p.properties.name as name, countIf(matchesAction(${id})) from persons as p left join events as e
           on p.id = e.person_id and e.event = 'left' group by name order by name`,
      [
        ['P1', 0],
        ['P2', 0],
      ],
    ],
    [
      (id) =>
        `select arrayCount(n -> matchesAction(${id}) and n > 1, [1, 2, 3]) as n, count() from events group by n order by n`,
      [
        [0, 60],
        [2, 12],
      ],
    ],
    [(id) => `select uniq(person_id) from events having countIf(matchesAction(${id})) = 12`, [[2]]],
  ])('%# is answered', async (text, results) => {
    expect((await query(text(id))).results).toEqual(results);
  });

  it('can be used by filters, breakdowns and maths of insights', async () => {
    const of = `matchesAction(${id})`;
    const { body } = await api.call('POST', 'query/', {
      query: {
        kind: 'TrendsQuery',
        series: [{ math: 'hogql', math_hogql: `countIf(${of})` }],
        properties: [{ type: 'hogql', key: `${of} or event = 'left'` }],
        breakdownFilter: { breakdown_type: 'hogql', breakdown: of },
        dateRange: { date_from: '2026-11-10', date_to: '2026-11-10' },
      },
    });
    expect(body.results).toMatchObject([
      { breakdown_value: 'true', data: [12] },
      { breakdown_value: 'false', data: [0] },
    ]);
  });

  it('cannot be used by exports, whose intervals must not change', async () => {
    const { status, body } = await api.call('POST', 'batch_exports/check/', {
      name: 'Purchases',
      model: 'events',
      interval: 'hour',
      dialect_query: `select uuid from events where matchesAction(${id})`,
      destination: { type: 'S3', config: { bucket_name: 'b', region: 'eu-central-1', prefix: 'p' } },
    });
    expect([status, body.attr, body.detail]).toEqual([
      400,
      'dialect_query',
      expect.stringContaining('matchesAction() is not available here'),
    ]);
  });
});

describe('an action', () => {
  it('is created, read, listed by name, changed and deleted', async () => {
    const steps = [{ event: 'bought' }];
    const response = await api.call('POST', 'actions/', { name: 'aardvark', description: 'First', steps });
    const stored = [{ event: 'bought', properties: [], url: null, url_matching: null }];
    expect([response.status, response.body]).toEqual([
      201,
      {
        id: expect.any(Number),
        team_id: api.projectId,
        name: 'aardvark',
        description: 'First',
        steps: stored,
        created_at: expect.any(String),
        last_updated_at: response.body.created_at,
      },
    ]);
    const path = new URL(String(response.headers.location)).pathname;
    expect((await api.call('GET', path)).body).toEqual(response.body);
    const { body: page } = await api.call('GET', 'actions/?limit=1');
    expect(page).toMatchObject({ results: [response.body], next: expect.stringContaining('offset=1') });
    const changed = await api.call('PATCH', path, { name: 'Aardvark', description: null });
    expect(changed.body).toMatchObject({ name: 'Aardvark', description: '', steps: stored });
    // What was read can be sent back.
    expect((await api.call('PATCH', path, changed.body)).body).toMatchObject({
      name: 'Aardvark',
      steps: stored,
    });
    expect((await api.call('DELETE', path)).status).toBe(204);
    for (const method of ['GET', 'PATCH', 'DELETE'] as const)
      expect((await api.call(method, path, method === 'PATCH' ? {} : undefined)).status).toBe(404);
  });

  it('is in the audit trail with what changed', async () => {
    const { id } = await created([{ event: 'bought' }], { name: 'Audited' });
    await api.call('PATCH', `actions/${id}/`, { steps: [{ event: 'left' }] });
    await api.call('DELETE', `actions/${id}/`);
    const { body } = await api.call('GET', `audit/?object=actions/${id}`);
    const stepOf = (event: string) => [expect.objectContaining({ event })];
    expect(body.results).toMatchObject([
      {
        action: 'action.delete',
        changes: [
          { field: 'name', before: 'Audited', after: null },
          { field: 'description', before: '', after: null },
          { field: 'steps', before: stepOf('left'), after: null },
        ],
      },
      {
        action: 'action.update',
        changes: [{ field: 'steps', before: stepOf('bought'), after: stepOf('left') }],
      },
      {
        action: 'action.create',
        changes: expect.arrayContaining([expect.objectContaining({ field: 'steps' })]),
      },
    ]);
  });

  it('that changes, changes what queries answer, and one that is deleted is named', async () => {
    const { id } = await created([{ event: 'bought' }], { name: 'Moving' });
    const text = "select count() from events where matchesAction('Moving')";
    const trend = {
      kind: 'TrendsQuery',
      series: [{ kind: 'ActionsNode', id, name: 'as it was called' }],
      dateRange: { date_from: '2026-11-10', date_to: '2026-11-10' },
    };
    expect((await query(text)).results).toEqual([[24]]);
    expect((await query(text)).body.is_cached).toBe(true);
    await api.call('PATCH', `actions/${id}/`, { steps: [{ event: 'bought' }, { event: 'left' }] });
    expect((await query(text)).results).toEqual([[48]]);
    await api.call('PATCH', `actions/${id}/`, { name: 'Moved' });
    expect((await api.call('POST', 'query/', { query: trend })).body.results).toMatchObject([
      { label: 'Moved', data: [48] },
    ]);
    await api.call('DELETE', `actions/${id}/`);
    const failed = [await query(text), await api.call('POST', 'query/', { query: trend })];
    expect(failed.map(({ status, body }) => [status, body.attr, body.detail])).toEqual([
      [400, 'query__query', expect.stringContaining("This project has no action 'Moving'.")],
      [400, 'query__series__0__id', `This project has no action ${id}.`],
    ]);
  });

  it.each<readonly [body: object, attr: string | null, detail: RegExp]>([
    [{ steps: [{ event: 'a' }] }, 'name', /required/],
    [{ name: ' ', steps: [{ event: 'a' }] }, 'name', /blank/],
    [{ name: 'x\ny', steps: [{ event: 'a' }] }, 'name', /Line breaks/],
    [{ name: 'No steps' }, 'steps', /required/],
    [{ name: 'No steps', steps: [] }, 'steps', /at least one step/],
    [{ name: 'x', steps: Array.from({ length: 21 }, () => ({ event: 'a' })) }, 'steps', /at most 20 steps/],
    [{ name: 'x', steps: [{ event: 'a', url: 'x'.repeat(10_001) }] }, 'steps__0__url', /10,000/],
    [
      { name: 'x', steps: Array.from({ length: 3 }, () => ({ url: 'x'.repeat(9_000) })) },
      'steps',
      /at most 20000 characters/,
    ],
    [
      { name: 'x', steps: [{ event: 'a', selector: '.buy' }] },
      'steps__0__selector',
      /cannot select elements/,
    ],
    [{ name: 'x', steps: [{ event: 'a' }, { tag_name: 'a' }] }, 'steps__1__tag_name', /elements_chain/],
    [{ name: 'x', steps: [{ text: 'Buy' }] }, 'steps__0__text', /elements_chain/],
    [{ name: 'x', steps: [{ href: '/' }] }, 'steps__0__href', /elements_chain/],
    [{ name: 'x', steps: [{ event: 'a', colour: 'red' }] }, 'steps__0__colour', /Unknown field/],
    [{ name: 'x', steps: [{ event: 'a' }], post_to_slack: true }, 'post_to_slack', /Unknown field/],
    [{ name: 'x', steps: [{ url: 'a', url_matching: 'starts' }] }, 'steps__0__url_matching', /one of/],
    [{ name: 'x', steps: [{ url: '(', url_matching: 'regex' }] }, 'steps__0__url', /./],
    [
      { name: 'x', steps: [{ properties: [{ type: 'element', key: 'text', value: 'Buy' }] }] },
      'steps__0__properties__0__type',
      /elements_chain/,
    ],
    [
      {
        name: 'x',
        steps: [{ event: 'a' }, { properties: [filter('a', 1), filter('b', '(', { operator: 'regex' })] }],
      },
      'steps__1__properties__1__value',
      /./,
    ],
    [
      { name: 'x', steps: [{ properties: [{ type: 'hogql', key: 'event = ' }] }] },
      'steps__0__properties__0__key',
      /line 1/,
    ],
    [
      { name: 'x', steps: [{ properties: [{ type: 'hogql', key: 'matchesAction(1)' }] }] },
      'steps',
      /cannot name an action/,
    ],
    [{ name: 'x', steps: 'bought' }, 'steps', /list|array/],
  ])('%# is refused by name', async (body, attr, detail) => {
    const response = await api.call('POST', 'actions/', body);
    expect([response.status, response.body.attr, response.body.detail]).toEqual([
      400,
      attr,
      expect.stringMatching(detail),
    ]);
  });

  it('has a name of its own in its project', async () => {
    const { id } = await created([{ event: 'bought' }], { name: 'Taken' });
    const again = await created([{ event: 'left' }], { name: 'Taken' });
    const other = await created([{ event: 'left' }], { name: 'Free' });
    const renamed = await api.call('PATCH', `actions/${other.id}/`, { name: 'Taken' });
    for (const { status, body } of [again, renamed])
      expect([status, body.attr, body.detail]).toEqual([
        400,
        'name',
        'This project has an action of this name.',
      ]);
    expect((await api.call('PATCH', `actions/${id}/`, { name: 'Taken' })).status).toBe(200);
    const { key } = await api.newKey(api.otherProjectId);
    const elsewhere = await api.call(
      'POST',
      `/api/projects/${api.otherProjectId}/actions/`,
      { name: 'Taken', steps: [{ event: 'bought' }] },
      { authorization: `Bearer ${key}` },
    );
    expect(elsewhere.status).toBe(201);
  });

  it('that this version cannot answer is named, and its query fails alone', async () => {
    const { id } = await created([{ properties: [{ type: 'hogql', key: 'no_such_field = 1' }] }], {
      name: 'Odd',
    });
    const { status, body } = await query(`select count() from events where matchesAction(${id})`);
    expect([status, body.detail]).toEqual([
      400,
      expect.stringMatching(new RegExp(`^Action ${id} \\(Odd\\): Unable to resolve field: no_such_field`)),
    ]);
    const { body: trend } = await api.call('POST', 'query/', {
      query: { kind: 'TrendsQuery', series: [{ kind: 'ActionsNode', id }] },
    });
    expect(trend).toMatchObject({ attr: 'query__series__0', code: 'dialect_error' });
    expect(await countOf("event = 'left'")).toBe(24);
  });
});

it('exportd action does the same', async () => {
  const service = { EXPORTD_BASE_URL: await api.listen(), EXPORTD_API_KEY: api.key };
  const action = async (...args: string[]) => {
    const { code, stdout, stderr } = await exportd(service, 'action', ...args);
    return [code, code === 0 ? stdout : stderr] as const;
  };
  const json = async (...args: string[]): Promise<Record<string, unknown>> =>
    JSON.parse((await action(...args, '--json'))[1]) as Record<string, unknown>;
  const made = await json('create', '--name', 'By hand', '--event', 'bought', '--event', 'left');
  expect(made).toMatchObject({ name: 'By hand', steps: [{ event: 'bought' }, { event: 'left' }] });
  const id = String(made.id);
  expect(await json('get', id)).toEqual(made);
  expect(await action('list')).toEqual([0, expect.stringMatching(/By hand +bought; left/)]);
  expect(await json('update', id, '--steps', '[{"url": "/buy"}]')).toMatchObject({
    name: 'By hand',
    steps: [{ event: null, url: '/buy' }],
  });
  expect(await countOf("matchesAction('By hand')")).toBe(
    rows.filter(({ url }) => url?.includes('/buy')).length,
  );
  expect(await action('create', '--name', 'By hand', '--event', 'bought')).toEqual([
    1,
    expect.stringContaining('name: This project has an action of this name.'),
  ]);
  expect(await action('create', '--name', 'x', '--steps', '[{"selector": ".a"}]')).toEqual([
    1,
    expect.stringContaining('steps__0__selector: Steps cannot select elements'),
  ]);
  expect(await action('create', '--name', 'x', '--steps', '{')).toEqual([
    1,
    expect.stringContaining('It must be JSON.'),
  ]);
  expect(await action('delete', id)).toEqual([0, 'Deleted.\n']);
  expect(await action('get', id)).toEqual([
    1,
    expect.stringContaining(
      `There is no action "${id}" in the project. "exportd action list" lists what there is.`,
    ),
  ]);
});
