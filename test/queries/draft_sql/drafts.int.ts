import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Project } from '@exportd/dialect/resolve/statement';
import { project as anyProject } from '../../../src/dialect/test/project.ts';
import { rowsOf } from '../../../src/dialect/test/rows_of.ts';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertShop } from './shop_data.ts';

let api: ApiHarness;
let project: Project;
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  await insertShop(pool, api.projectId, api.otherProjectId);
  project = {
    ...anyProject,
    teamId: api.projectId,
    schema: { ...anyProject.schema, warehouse: new Map(), properties: new Map() },
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
    'users by plan',
    [
      ['pro', 2],
      ['free', 1],
    ],
  ],
  ['users of signed up this month', [[2]]],
  [
    'signups per month by country',
    [
      ['2026-10-01', 'Germany', 1],
      ['2026-11-01', 'France', 1],
      ['2026-11-01', 'Germany', 1],
    ],
  ],
];

describe('Drafts of queries', () => {
  it.each(expectedRows)('%s', async (prompt, rows) => {
    expect(await rowsFor(prompt)).toEqual(rows);
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
      'only the last 7 days',
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

  it('say which words are unclear and what can be drafted', async () => {
    const { body } = await draft({ prompt: 'completed launches per day' });
    expect(body.detail).toContain('"launches"');
    expect(body.detail).toContain('A draft counts events or unique users');
  });
});
