import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportd } from '../cli/command_line.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), event, 'ada', '{"plan": "pro", "price": 3}', now() - ago, now() - ago
     from (values ('purchase', interval '1 hour'), ('signed up', '1 hour'), ('left', '91 days')) event (event, ago)`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into persons (team_id, id, properties, created_at, updated_at)
     values ($1, gen_random_uuid(), '{"email": "ada@example.com"}', now(), now())`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const noticeOf = async (query: object): Promise<unknown> => {
  const { status, body } = await api.call('POST', 'query/', { query, refresh: 'force_blocking' });
  expect(status).toBe(200);
  return body.notice;
};
const ofText = (query: string): Promise<unknown> => noticeOf({ kind: 'DialectQuery', query });
const ofSeries = (kind: string, ...series: readonly object[]): Promise<unknown> =>
  noticeOf({ kind, series: series.map((one) => ({ kind: 'EventsNode', ...one })) });

describe('a name that no row has is named, with the one that was probably meant', () => {
  it('of an event in a SELECT, a trend, a funnel and a list of events', async () => {
    const notice = 'No event purchas in 90 days. Did you mean purchase?';
    expect(await ofText("select count() from events where event = 'purchas'")).toBe(notice);
    expect(await ofSeries('TrendsQuery', { event: 'purchase' }, { event: 'purchas' })).toBe(notice);
    expect(await ofSeries('FunnelsQuery', { event: 'signed up' }, { event: 'purchas' })).toBe(notice);
    expect(await noticeOf({ kind: 'EventsQuery', select: ['event'], event: 'purchas' })).toBe(notice);
    const where = ["event = 'purchas'"];
    expect(await noticeOf({ kind: 'EventsQuery', select: ['event'], where })).toBe(notice);
  });

  it('of a property of events and of persons', async () => {
    expect(await ofText('select properties.plann from events')).toBe(
      'No event property plann in 90 days. Did you mean plan?',
    );
    expect(await noticeOf({ kind: 'EventsQuery', select: ['properties.plann', 'properties.price'] })).toBe(
      'No event property plann in 90 days. Did you mean plan?',
    );
    const emial = [{ type: 'person', key: 'emial', operator: 'is_set' }];
    expect(await ofSeries('TrendsQuery', { event: 'purchase', properties: emial })).toBe(
      'No person property emial. Did you mean email?',
    );
  });

  it('in quotes where it has spaces, and without a suggestion where none is near', async () => {
    expect(await ofText("select 1 from events where event in ('signed upp', 'xyz')")).toBe(
      'No event "signed upp" in 90 days. Did you mean signed up? No event xyz in 90 days.',
    );
  });

  it('also if it is 90 days old', async () => {
    expect(await ofText("select count() from events where event = 'left'")).toBe('No event left in 90 days.');
  });

  it('on the command line', async () => {
    const query = { kind: 'DialectQuery', query: "select count() as n from events where event = 'purchas'" };
    await api.call('POST', 'saved_queries/', { name: 'Purchases', query });
    const service = { EXPORTD_BASE_URL: await api.listen(), EXPORTD_API_KEY: api.key };
    expect(await exportd(service, 'query', 'run', 'Purchases')).toEqual({
      code: 0,
      stdout: 'n\n0\n',
      stderr: 'No event purchas in 90 days. Did you mean purchase?\n',
    });
  });
});

describe('a query without a wrong name has no notice', () => {
  it.each([
    "select count() from events where event in ('purchase', 'signed up') and properties.plan = 'pro'",
    "select event as name from events where name = 'nothing'",
    'select properties.email from persons',
  ])('%s', async (text) => {
    expect(await ofText(text)).toBeNull();
  });

  it('nor one whose property has a declared type, or a filter on other things', async () => {
    await api.database.pool.query(
      `insert into exportd.property_definitions (team_id, scope, name, type) values ($1, 'event', 'declared', 'numeric')`,
      [api.projectId],
    );
    expect(await ofText('select properties.declared from events')).toBeNull();
    const session = [{ type: 'session', key: '$session_duration', operator: 'gt', value: 10 }];
    expect(await ofSeries('TrendsQuery', { event: 'purchase', properties: session })).toBeNull();
  });
});
