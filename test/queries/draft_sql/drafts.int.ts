import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Project } from '../../../src/dialect/resolve/statement.ts';
import { project as anyProject } from '../../dialect/project.ts';
import { rowsOf } from '../../dialect/rows_of.ts';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertShop, person } from './shop_data.ts';

let api: ApiHarness;
let project: Project;
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  await insertShop(pool, api.projectId, api.otherProjectId);
  project = {
    ...anyProject,
    teamId: api.projectId,
    schema: { ...anyProject.schema, warehouse: new Map(), eventProperties: new Map() },
  };
});
afterAll(() => api.close());

const draft = (parameters: Readonly<Record<string, string>>) =>
  api.call(
    'GET',
    `/api/projects/${api.projectId}/query/draft_sql?${new URLSearchParams(parameters).toString()}`,
  );

/** The rows of the drafted query, on the Saturday that the data was written for. */
async function rowsFor(prompt: string, more: Readonly<Record<string, string>> = {}) {
  const { status, body, text } = await draft({ prompt, ...more });
  if (status !== 200) throw new Error(`${prompt}: ${text}`);
  return rowsOf(api.database.pool, String(body.sql), project);
}

type Case = readonly [prompt: string, rows: readonly (readonly unknown[])[]];
const [ada, bob, eve] = [person(1), person(2), person(3)];

const expectedRows: readonly Case[] = [
  ['Signups per day in the last 7 days', [['2026-11-20T00:00:00.000Z', 1]]],
  ['How many page views were there yesterday?', [[3]]],
  ['unique users last week', [[2]]],
  [
    'weekly active users in the last 14 days',
    [
      ['2026-11-08', 2],
      ['2026-11-15', 2],
    ],
  ],
  [
    'What are the top 2 browsers?',
    [
      ['Chrome', 5],
      ['Safari', 3],
    ],
  ],
  [
    'pageviews by country',
    [
      ['Germany', 3],
      ['France', 1],
    ],
  ],
  [
    'average amount of purchases per month',
    [
      ['2026-10-01', 100],
      ['2026-11-01', 40],
    ],
  ],
  [
    'total amount by country',
    [
      ['France', 100],
      ['Germany', 80],
    ],
  ],
  [
    'amount by country',
    [
      ['France', 100],
      ['Germany', 80],
    ],
  ],
  [
    'revenue per country',
    [
      ['France', 100],
      ['Germany', 80],
    ],
  ],
  ['revenue per country of purchases this month', [['Germany', 80]]],
  [
    'revenue by browser per month',
    [
      ['2026-10-01', 'Safari', 100],
      ['2026-11-01', 'Chrome', 80],
    ],
  ],
  ['conversion from signup to purchase in the last 30 days', [[2, 1, 50]]],
  ['how many users who signed up then purchased this month', [[2, 1, 50]]],
  ['users who signed up but never purchased', [[1]]],
  [
    'users by plan',
    [
      ['pro', 2],
      ['free', 1],
    ],
  ],
  ['persons whose email contains example.com', [[2]]],
  ['how many persons are there', [[3]]],
  [
    'new users per week',
    [
      ['2026-11-01', 1],
      ['2026-11-08', 1],
      ['2026-11-15', 1],
    ],
  ],
  ['average session duration', [[600]]],
  ['How many sessions were there yesterday?', [[2]]],
  ['bounce rate', [[0.6]]],
  ['pageviews this week compared to last week', [[3, 1]]],
  ['pageviews compared to last week', [[3, 1]]],
  ['top 1 users by total amount', [[bob, 100]]],
  [
    'compare signups and purchases per month',
    [
      ['2026-10-01', 1, 1],
      ['2026-11-01', 2, 2],
    ],
  ],
  ['purchases where amount is greater than 40', [[2]]],
  ['purchases with plan pro', [[1]]],
  ['pageviews in Germany on Chrome', [[2]]],
  ['pageviews not in Germany', [[1]]],
  ['pageviews per user', [[4 / 3]]],
  ['events per session', [[8 / 5]]],
  [
    'most active users this month',
    [
      [ada, 5],
      [bob, 2],
      [eve, 1],
    ],
  ],
  [
    'which events are most common',
    [
      ['$pageview', 4],
      ['purchase_completed', 3],
      ['signed_up', 3],
    ],
  ],
  ['signups between 2026-10-01 and 2026-10-31', [[1]]],
  ['signups in October 2026 by browser', [['Firefox', 1]]],
  [
    'pageviews by hour of day',
    [
      [9, 2],
      [11, 1],
      [15, 1],
    ],
  ],
  ['how many different pages were viewed in November 2026', [[2]]],
  ['total amount of purchases over time since 2026-11-01', [['2026-11-21T00:00:00.000Z', 80]]],
  [
    'top country per month by signups',
    [
      ['2026-10-01', 'Germany', 1],
      ['2026-11-01', 'France', 1],
      ['2026-11-01', 'Germany', 1],
    ],
  ],
  ['users with more than 1 purchase', [[1]]],
  ['how many different emails are there', [[3]]],
  ['top 1 email by signups', [['ada@example.com', 1]]],
  [
    'average session duration per day',
    [
      ['2026-11-12T00:00:00.000Z', 0],
      ['2026-11-20T00:00:00.000Z', 600],
      ['2026-11-21T00:00:00.000Z', 1800],
    ],
  ],
  ['sessions longer than 10 minutes', [[2]]],
  [
    'sessions by browser',
    [
      ['Chrome', 2],
      ['Safari', 2],
      ['Firefox', 1],
    ],
  ],
  ['funnel: page view, signup, purchase', [[3, 1, 1, 33.33]]],
  ['where path is /pricing, how many page views per day', [['2026-11-20T00:00:00.000Z', 1]]],
  ['number of purchases by country, order by count desc, limit 1', [['Germany', 2]]],
];

describe('Drafts of queries', () => {
  it.each(expectedRows)('%s', async (prompt, rows) => {
    expect(await rowsFor(prompt)).toEqual(rows);
  });

  it('list rows, newest first', async () => {
    const rows = await rowsFor('show me the latest 2 purchases');
    expect(rows.map(([, event, distinctId, properties]) => [event, distinctId, properties])).toMatchObject([
      ['purchase_completed', 'd1', { amount: 30 }],
      ['purchase_completed', 'd1', { amount: 50 }],
    ]);
    const persons = await rowsFor('list users with plan pro');
    expect(persons.map(([id]) => id)).toEqual([eve, ada]);
  });

  it('read a property as a number if a definition says so, and suggest what is understood', async () => {
    const { pool } = api.database;
    const { body } = await draft({ prompt: 'plan per country' });
    expect(body.detail).toBe(
      'Could not interpret "plan". Try "signups by plan", "top 10 plan" or "different plan".',
    );
    expect((await draft({ prompt: 'amount' })).body.detail).toContain('or amount by another property.');
    await pool.query(
      `insert into exportd.property_definitions (team_id, scope, name, type) values ($1, 'event', 'discount', 'numeric')`,
      [api.projectId],
    );
    const { status } = await draft({ prompt: 'discount per country' });
    await pool.query('delete from exportd.property_definitions');
    expect([status, (await draft({ prompt: 'discount per country' })).body.code]).toEqual([200, 'unclear']);
  });

  it('narrow the current query if the prompt says nothing else', async () => {
    const current_query = 'select count() from events';
    expect(await rowsFor('only in Germany', { current_query })).toEqual([[7]]);
    expect(await rowsFor('only the last 7 days', { current_query })).toEqual([[6]]);
    expect(await rowsFor('how many signups', { current_query })).toEqual([[3]]);
  });

  it('reject missing, long and unclear prompts, and keys without the scope', async () => {
    const rejected = async (parameters: Readonly<Record<string, string>>) => {
      const { status, body } = await draft(parameters);
      return [status, body.code, body.attr];
    };
    expect(await rejected({})).toEqual([400, 'required', 'prompt']);
    expect(await rejected({ prompt: '  ' })).toEqual([400, 'required', 'prompt']);
    expect(await rejected({ prompt: 'signups '.repeat(51) })).toEqual([400, 'too_long', 'prompt']);
    for (const prompt of [
      'hello',
      'count',
      'write me a poem',
      'signups of aliens',
      'signups except bots',
      'rocket launched per day',
      'events with fuel kerosene',
      'signups per day and bounce',
      'signups yesterday, this week compared to last week',
      'top 2 users by amount',
      'amount per month',
    ])
      expect([prompt, ...(await rejected({ prompt }))]).toEqual([prompt, 400, 'unclear', 'prompt']);
    const { key } = await api.newKey(api.projectId, ['batch_export:read']);
    const response = await api.call(
      'GET',
      `/api/projects/${api.projectId}/query/draft_sql?prompt=signups`,
      undefined,
      { authorization: `Bearer ${key}` },
    );
    expect(response.status).toBe(403);
  });

  it('say which words are unclear and what they could mean', async () => {
    const { body } = await draft({ prompt: 'completed launches per day' });
    expect(body.detail).toContain('"launches"');
    const ofNumber = await draft({ prompt: 'top 2 users by amount' });
    expect(ofNumber.body.detail).toContain('such as the total amount or the average amount');
  });
});
