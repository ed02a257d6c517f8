import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { answerSettings } from '../../src/network/postgresql_session.ts';
import { createPool } from '../../src/journal/database.ts';
import { migrateControl, migrateSource } from '../../src/migrate/migrate.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { onServer } from '../setup/template_database.ts';
import { prepareQueryRole } from '../setup/query_role.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blocksOf, hourOf, neverAborted, rowsOf, sourceOf } from './rows.ts';

/** What a role or a database may set, each unlike the default. */
const oddSettings: Readonly<Record<string, string>> = {
  DateStyle: 'German',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  timezone_abbreviations: 'India',
  extra_float_digits: '-15',
  bytea_output: 'escape',
  xmlbinary: 'hex',
  xmloption: 'document',
  array_nulls: 'off',
  transform_null_equals: 'on',
  backslash_quote: 'on',
  quote_all_identifiers: 'on',
  standard_conforming_strings: 'off',
  lc_numeric: 'POSIX',
  lc_time: 'POSIX',
  gin_fuzzy_search_limit: '1',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  client_encoding: 'LATIN1',
  // These change the plans of statements.
  jit: 'on',
  jit_above_cost: '0',
  plan_cache_mode: 'force_generic_plan',
  debug_parallel_query: 'on',
  enable_indexscan: 'off',
  enable_hashagg: 'off',
  enable_hashjoin: 'off',
  enable_nestloop: 'off',
  enable_sort: 'off',
  enable_seqscan: 'off',
  enable_partition_pruning: 'off',
  join_collapse_limit: '1',
  from_collapse_limit: '1',
};

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  // The first hour of the range is that of the blocks.
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
     select $1, uuid_hash::uuid, case n % 3 when 0 then 'sign up' else 'click \\ ''' || n % 2 || '''' end, 'üser ' || n % 7,
       ('00000000-0000-4000-8000-00000000000' || n % 7)::uuid,
       jsonb_build_object('number', n / 10.0::float8, 'list', array[n, null], 'null', null, 'at', t), t, t, t
     from generate_series(1, 60) n, md5('row ' || n) as uuid_hash,
       lateral (select timestamptz '2026-11-01 10:00:00.5Z' + n * interval '59 seconds' as t) times`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.persons (team_id, id, properties, created_at, updated_at, version)
     select $1, ('00000000-0000-4000-8000-00000000000' || n)::uuid, jsonb_build_object('plan', 'p' || n % 2),
       '2026-11-01 10:05Z', '2026-11-01 10:06Z', n from generate_series(0, 6) n`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select $1, 'üser ' || n, ('00000000-0000-4000-8000-00000000000' || n)::uuid, n, '2026-11-01 10:07Z'
     from generate_series(0, 6) n`,
    [api.projectId],
  );
});
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => api.close());

const dialect = (query: string) => ({ kind: 'DialectQuery', query });
const dateRange = { date_from: '2026-10-30', date_to: '2026-11-03' };

const queries: readonly object[] = [
  dialect('select timestamp, uuid, event, properties, created_at from events order by timestamp, uuid'),
  dialect(`select 0.1 + 0.2, 1e100, 1/3, toDate('2026-11-23'), toDateTime('2026-11-23 10:00:00')`),
  dialect(`select toDateTime('2026-11-01 10:00:00') - toIntervalHour(1), toIntervalDay(400)`),
  dialect(
    `select toString(timestamp), toString(toDate(timestamp)), toString(0.1 + 0.2) from events order by timestamp, uuid`,
  ),
  dialect(
    `select formatDateTime(timestamp, '%W %M %d %H:%i:%S'), toMonth(timestamp) from events order by timestamp, uuid`,
  ),
  dialect(
    `select groupArray(timestamp), groupArray(properties.number), groupUniqArray(event) from events group by event order by event`,
  ),
  dialect(
    `select event, properties.list, properties.null = null, properties.at from events order by timestamp, uuid`,
  ),
  dialect(
    `select 'a\\\\b', 'it\\'s', event from events where event = 'click \\\\ \\'1\\'' order by timestamp, uuid`,
  ),
  dialect(
    `select toFloat(properties.number), sum(toFloat(properties.number)) over () from events order by timestamp, uuid`,
  ),
  dialect(
    `select [1, null, 3], ('a', timestamp), person.properties.plan from events order by timestamp, uuid`,
  ),
  dialect(
    `select toDateTime('01/02/2026'), parseDateTimeBestEffort('01/02/2026 10:00'), toDate('01/02/2026')`,
  ),
  dialect(`select * from persons order by id`),
  {
    kind: 'TrendsQuery',
    dateRange,
    interval: 'hour',
    series: [{ kind: 'EventsNode', event: 'sign up', math: 'dau' }],
    breakdownFilter: { breakdown: 'plan', breakdown_type: 'person' },
  },
  { kind: 'TrendsQuery', dateRange, series: [{ kind: 'EventsNode', event: 'sign up' }] },
  {
    kind: 'TrendsQuery',
    dateRange,
    series: [{ kind: 'EventsNode', event: 'sign up', math: 'sum', math_property: 'number' }],
  },
  {
    kind: 'FunnelsQuery',
    dateRange,
    series: [
      { kind: 'EventsNode', event: 'sign up' },
      { kind: 'EventsNode', event: null },
    ],
  },
  { kind: 'EventsQuery', select: ['*', 'person', 'timestamp'], after: '2026-10-30', before: '2026-11-03' },
  { kind: 'ActorsQuery', select: ['person', 'id', 'created_at'] },
];

const answers = async () =>
  Promise.all(
    queries.map(async (query) => {
      const { status, body } = await api.call('POST', 'query', { query, refresh: 'force_blocking' });
      return { status, detail: body.detail, results: JSON.stringify(body.results) };
    }),
  );

const get = async (path: string) => {
  const { status, body } = await api.call('GET', path);
  return { status, body };
};

const exported = async () => {
  const source = sourceOf(api.database.url);
  try {
    const ranges = (['events', 'persons'] as const).map((model) => ({
      ...hourOf(model),
      team_id: api.projectId,
    }));
    return await Promise.all(
      ranges.map(async (range) => ({
        rows: (await blocksOf(source, range)).flatMap(rowsOf),
        count: await source.countRows(range, neverAborted()),
        fingerprint: await source.fingerprint(range, neverAborted()),
        splits: await source.splitKeys(range, 10, neverAborted()),
      })),
    );
  } finally {
    await source.close();
  }
};

const databaseName = () => new URL(api.database.url).pathname.slice(1);

const endSessions = () =>
  onServer(
    api.database.url,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${databaseName()}' and pid <> pg_backend_pid()`,
  );

describe('What a role or database sets', () => {
  it('changes no answer of the API, no row of an export and no fingerprint', async () => {
    // What a response says of an export ends with its last whole interval: no day ends during the test.
    const id = await api.createExport({ interval: 'day', end_at: null });
    const pages = ['batch_exports', `batch_exports/${id}`, `batch_exports/${id}/runs`, 'source/check'];
    const read = async () => ({
      queries: await answers(),
      exported: await exported(),
      pages: await Promise.all(pages.map(get)),
    });
    const expected = await read();
    expect(expected.queries.map(({ status, detail }) => [status, detail])).toEqual(
      queries.map(() => [200, undefined]),
    );
    expect(expected.pages.map(({ status }) => status)).toEqual(pages.map(() => 200));
    for (const [setting, value] of Object.entries(oddSettings))
      await onServer(api.database.url, `alter database ${databaseName()} set ${setting} = '${value}'`);
    await endSessions();
    // The pools find out that their connections have ended.
    await waitFor(
      async () => (await api.call('POST', 'query', { query: dialect('select 1') })).status === 200,
      'a query after the sessions have ended',
    );
    const found = await read();
    expect(found.exported).toEqual(expected.exported);
    for (const [index, query] of queries.entries())
      expect([query, found.queries[index]]).toEqual([query, expected.queries[index]]);
    expect(found.pages).toEqual(expected.pages);
  });

  it('disturbs neither migrations nor the setup of the role of queries', async () => {
    await migrateSource(api.database.url);
    await migrateControl(api.database.url);
    await prepareQueryRole(api.database.url);
    const { body } = await api.call('POST', 'query', {
      query: dialect('select count() from events'),
      refresh: 'force_blocking',
    });
    expect(body.results).toEqual([[60]]);
  });

  it('is replaced in every session of the control database', async () => {
    for (const url of [api.database.url, `${api.database.url}?options=-c%20datestyle=SQL`]) {
      const pool = createPool(url, { max: 1 });
      closing.push(() => pool.end());
      const { rows } = await pool.query<{ name: string; setting: string }>(
        'select name, setting from pg_settings where name = any($1)',
        [Object.keys(answerSettings)],
      );
      expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual(answerSettings);
    }
  });
});

/** Settings of PostgreSQL's groups below that change no answer, and why. */
const leftAlone: Readonly<Record<string, string>> = {
  icu_validation_level: 'creates collations',
  client_encoding: 'the driver sets it',
  default_text_search_config: 'no statement searches text in the language of the session',
  lc_monetary: 'decides what a stored amount of the type money is',
  check_function_bodies: 'creates functions',
  client_min_messages: 'notices are ignored',
  createrole_self_grant: 'creates roles',
  default_table_access_method: 'creates tables',
  default_tablespace: 'creates tables',
  default_toast_compression: 'stores values',
  default_transaction_deferrable: 'has an effect on serializable transactions alone',
  default_transaction_read_only: 'an operator keeps a database from being written',
  transaction_deferrable: 'has an effect on serializable transactions alone',
  transaction_isolation: 'is that of the default',
  transaction_read_only: 'is that of the default',
  gin_pending_list_limit: 'writes indexes',
  idle_in_transaction_session_timeout: 'is set in each session',
  idle_session_timeout: 'ends a session, which the pool replaces',
  lock_timeout: 'ends a statement with an error',
  statement_timeout: 'is set in each session',
  transaction_timeout: 'ends a session with an error',
  restrict_nonsystem_relation_kind: 'rejects statements with an error',
  row_security: 'is set in each transaction of the source',
  search_path:
    'finds relations that the settings name without their schema, and what functions of views read',
  temp_tablespaces: 'stores temporary files',
  escape_string_warning: 'notices are ignored',
  synchronize_seqscans: 'the order of rows without ORDER BY is not defined',
};

it('Each setting of a session that may change a value is replaced, or known to change none', async () => {
  const { rows } = await api.database.pool.query<{ name: string }>(
    `select name from pg_settings where context = 'user'
     and category ~ 'Locale and Formatting|Statement Behavior|Other Defaults|Compatibility' order by name`,
  );
  const known = new Set([...Object.keys(answerSettings), ...Object.keys(leftAlone)]);
  expect(rows.map(({ name }) => name).filter((name) => !known.has(name))).toEqual([]);
});
