import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

const secret = 'of-the-other-project';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  const { projectId, otherProjectId } = api;
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select team, gen_random_uuid(), name, name, jsonb_build_object('text', '(4111-1111', 'of', name), now()
     from (values ($1::integer, 'own'), ($2, $3)) as given(team, name)`,
    [projectId, otherProjectId, secret],
  );
});
afterAll(() => api.close());

const post = (query: object) => api.call('POST', `/api/projects/${api.projectId}/query/`, { query });
const runQuery = (query: string, more: object = {}) => post({ kind: 'DialectQuery', query, ...more });

describe('over HTTP', () => {
  it.each([
    "SELECT event FROM events WHERE event = '' OR 1 = 1; DROP TABLE events; --'",
    'SELECT 1; SELECT 2',
    'SELECT 1; DELETE FROM events',
    'DROP TABLE events',
    'INSERT INTO events SELECT * FROM events',
    "UPDATE events SET event = 'x'",
    'WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x',
    'TRUNCATE events',
    'COPY events TO STDOUT',
    'SET role postgres',
    'DO $$ BEGIN END $$',
    'EXPLAIN ANALYZE DELETE FROM events',
    'SELECT pg_sleep(10)',
    'SELECT sleep(3)',
    "SELECT current_setting('server_version')",
    "SELECT set_config('exportd.team', '1', false)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT dblink('host=127.0.0.1', 'select 1')",
    "SELECT query_to_xml('select * from exportd.api_keys', true, true, '')",
    'SELECT pg_terminate_backend(1)',
    'SELECT version()',
    'SELECT current_user',
    'SELECT * FROM pg_catalog.pg_authid',
    'SELECT * FROM pg_stat_activity',
    'SELECT * FROM information_schema.tables',
    'SELECT * FROM exportd.api_keys',
    'SELECT * FROM public.events',
    'SELECT * FROM system.tables',
    "SELECT * FROM url('http://127.0.0.1')",
    "SELECT * FROM file('/etc/passwd')",
    'SELECT ctid, xmin, tableoid FROM events',
    "SELECT 'events'::regclass",
    'SELECT * FROM events FOR UPDATE',
    'SELECT * INTO copied FROM events',
    'SELECT (SELECT team_id FROM exportd.projects)',
  ])('%s is rejected', async (query) => {
    const { status, body } = await runQuery(query);
    expect([status, body.code, body.attr]).toEqual([400, 'dialect_error', 'query__query']);
    expect(JSON.stringify(body)).not.toContain(secret);
  });

  it.each([
    { kind: 'EventsQuery', select: ['pg_sleep(10)'] },
    { kind: 'EventsQuery', select: ['event'], where: ['1 = 1) OR (team_id > 0; DROP TABLE events'] },
    { kind: 'EventsQuery', select: ['event'], orderBy: ['(SELECT usename FROM pg_user)'] },
    { kind: 'EventsQuery', select: ['event FROM events; SELECT 1'] },
  ])('expressions of another kind are rejected: %j', async (query) => {
    const { status } = await post(query);
    expect(status).toBe(400);
  });

  it.each(["'; drop table events; --", '$1); select pg_sleep(10); --', "\\' or 1=1 --", '{filters}', '%'])(
    'a value never becomes part of the query: %s',
    async (value) => {
      const response = await runQuery(
        'SELECT count() FROM events WHERE event = {name} OR properties.of = {name}',
        {
          values: { name: value },
        },
      );
      expect([response.status, response.body.results]).toEqual([200, [[0]]]);
    },
  );

  it.each([
    'SELECT count() FROM events WHERE team_id > 0 OR 1 = 1',
    'SELECT count() FROM events AS a FULL JOIN events AS b ON a.event = b.event',
    "SELECT count() FROM events WHERE distinct_id NOT IN (SELECT 'nobody')",
    'SELECT uniq(event) FROM (SELECT event FROM events UNION ALL SELECT properties.of FROM events)',
  ])('another project is not counted: %s', async (query) => {
    const { status, body } = await runQuery(query);
    expect([status, JSON.stringify(body).includes(secret)]).toEqual([200, false]);
    expect([[[1]], [[2]]]).toContainEqual(body.results);
  });

  it.each([
    ["SELECT match('a', properties.text) FROM events", '2201B'],
    ["SELECT toInt('9223372036854775807') + length(properties.text) FROM events", '22003'],
    ['SELECT toDate(timestamp) - 9000000 FROM events', '22008'],
    ['SELECT count() FROM events AS a FULL JOIN events AS b ON a.event != b.event', '0A000'],
  ])('an error quotes no value of a row: %s', async (query, code) => {
    const { status, body } = await runQuery(query);
    expect([status, body.code]).toEqual([400, 'query_failed']);
    expect(body.detail).toContain(code);
    expect(JSON.stringify(body)).not.toContain('4111');
  });

  it('none of these queries changed a row', async () => {
    const { rows } = await api.database.pool.query('select event from public.events order by event');
    expect(rows).toEqual([{ event: secret }, { event: 'own' }]);
  });
});
