/** What an attack may learn: nothing at all, or what its own project knows anyway. */
type Expectation = 'denied' | 'own rows';

/** One attempt to cross tenants or to reach the catalogue, as a user would send it, and as SQL that got past exportd. */
interface Attack {
  readonly name: string;
  /** As text of a query; by default the same as the SQL. */
  readonly query?: string;
  /** Statements that run one after another in the transaction of the query. */
  readonly sql: readonly string[];
  readonly expected: Expectation;
}

/** A name and a value of the attacked project, which no answer may contain. */
export const secret = 'of-the-other-project';

/** Attempts to read the rows of another project. */
const onTenants = (other: number): readonly Attack[] => [
  {
    name: 'all projects by a condition that is always true',
    query: 'SELECT event FROM events WHERE team_id > 0 OR 1 = 1',
    sql: ['select event from public.events where team_id > 0 or 1 = 1'],
    expected: 'own rows',
  },
  {
    name: 'another project by its id',
    query: `SELECT event FROM events WHERE team_id = ${other}`,
    sql: [`select event from public.events where team_id = ${other}`],
    expected: 'own rows',
  },
  {
    name: 'a union with unfiltered rows',
    query: 'SELECT event FROM events UNION ALL SELECT properties.of FROM events WHERE 1 = 1',
    sql: ["select event from public.events union all select properties ->> 'of' from public.events"],
    expected: 'own rows',
  },
  {
    name: 'an outer join',
    query: 'SELECT a.event, b.event FROM events AS a FULL JOIN events AS b ON a.uuid = b.uuid',
    sql: ['select a.event, b.event from public.events a full join public.events b on a.uuid = b.uuid'],
    expected: 'own rows',
  },
  {
    name: 'whole rows as documents',
    query: 'SELECT tuple(*) FROM events',
    sql: ['select row_to_json(stored) from public.events as stored'],
    expected: 'own rows',
  },
  {
    name: 'an error that only a row of the other project raises',
    query: `SELECT count() FROM events WHERE if(event = '${secret}', 1 / toInt('x'), 1) = 1`,
    sql: [
      `select event from public.events where case event when '${secret}' then 1 / (length(event) - ${secret.length}) else 1 end = 1`,
    ],
    expected: 'own rows',
  },
  {
    name: 'an error with a value of the other project',
    query: 'SELECT CAST(event AS Int64) FROM events',
    sql: [`select event from public.events where team_id = ${other} and event::integer = 1`],
    expected: 'own rows',
  },
  {
    name: 'a partition instead of its table',
    query: 'SELECT event FROM events_default',
    sql: ['select event from public.events_default'],
    expected: 'denied',
  },
  {
    name: 'persons',
    query: 'SELECT properties FROM persons WHERE 1 = 1',
    sql: ['select properties from public.persons'],
    expected: 'own rows',
  },
  {
    name: 'distinct ids',
    query: 'SELECT distinct_id FROM person_distinct_ids WHERE team_id != 0',
    sql: ['select distinct_id from public.person_distinct_ids'],
    expected: 'own rows',
  },
  {
    name: 'groups',
    query: 'SELECT key FROM groups WHERE 1 = 1',
    sql: ['select group_key from public.groups'],
    expected: 'own rows',
  },
  {
    name: 'a table that another project registered for itself alone',
    query: 'SELECT secret FROM vault',
    sql: ['select secret from public.vault'],
    expected: 'own rows',
  },
  {
    name: 'a view over all projects',
    query: 'SELECT event FROM everything',
    sql: ['select event from public.everything'],
    expected: 'denied',
  },
  {
    name: 'the view that exportd reads instead',
    query: 'SELECT event FROM exportd_query."public.everything"',
    sql: ['select event from exportd_query."public.everything"'],
    expected: 'own rows',
  },
  {
    name: 'the project set by a function',
    query: `SELECT set_config('exportd.team_id', '${other}', true)`,
    sql: [
      `with forged as materialized (select set_config('exportd.team_id', '${other}', true))
       select event from public.events, forged`,
    ],
    expected: 'denied',
  },
  {
    name: 'the project set by a statement',
    query: `SET exportd.team_id = '${other}'; SELECT event FROM events`,
    sql: [`set local exportd.team_id = '${other}'`, 'select event from public.events'],
    expected: 'denied',
  },
  {
    name: 'policies switched off',
    sql: ['set local row_security = off', 'select event from public.events'],
    expected: 'denied',
  },
  {
    name: 'no signature',
    sql: ["set local exportd.team_signature = ''", 'select event from public.events'],
    expected: 'denied',
  },
  {
    name: 'the settings of the session',
    sql: ['reset all', 'select event from public.events'],
    expected: 'denied',
  },
  {
    name: 'persons by a join that the policy must not leave to its condition',
    sql: [
      `select theirs.properties from public.events as own left join public.persons as theirs
       on theirs.id = case when own.person_id is null then theirs.id else theirs.id end`,
    ],
    expected: 'own rows',
  },
  {
    name: 'a signature of its own',
    query: `SELECT exportd_query.is_signed('team:${other}', '')`,
    sql: [`select exportd_query.is_signed('team:${other}', '')`],
    expected: 'denied',
  },
  {
    name: 'the keys that sign',
    query: 'SELECT * FROM exportd_query.signing_keys',
    sql: ['select * from exportd_query.signing_keys'],
    expected: 'denied',
  },
  {
    name: 'rows by SQL in a string',
    query: "SELECT query_to_xml('select * from public.events', true, true, '')",
    sql: ["select query_to_xml('select * from public.events', true, true, '')"],
    expected: 'denied',
  },
  {
    name: 'rows by COPY',
    query: 'COPY events TO STDOUT',
    sql: ["copy public.events_default to program 'cat'"],
    expected: 'denied',
  },
  {
    name: 'frequent values in the statistics',
    query: 'SELECT most_common_vals FROM pg_stats',
    sql: ["select most_common_vals::text from pg_stats where tablename = 'events'"],
    expected: 'denied',
  },
  {
    name: "exportd's own tables",
    query: 'SELECT * FROM exportd.api_keys',
    sql: ['select * from exportd.api_keys'],
    expected: 'denied',
  },
  {
    name: 'the queries of others',
    query: 'SELECT query FROM pg_stat_activity',
    sql: ['select query from pg_stat_activity'],
    expected: 'denied',
  },
];

const denied = (name: string, sql: string): Attack => ({ name, sql: [sql], expected: 'denied' });

/** Attempts to reach the catalogue, the server or the sessions of others. */
const onServer: readonly Attack[] = [
  denied('names of relations', 'select relname from pg_catalog.pg_class'),
  denied('roles', 'select rolname from pg_roles'),
  denied('the information schema', 'select table_name from information_schema.tables'),
  denied('sessions by their function', 'select pg_stat_get_activity(null)'),
  denied('definitions of views', "select pg_get_viewdef('public.everything'::regclass)"),
  denied('names in strings', "select to_regclass('public.' || 'vault')"),
  denied('settings', "select current_setting('data_directory')"),
  denied('the version', 'select version()'),
  denied('files', "select pg_read_file('/etc/passwd')"),
  denied('large objects', "select lo_import('/etc/passwd')"),
  denied('another connection', "select dblink('host=127.0.0.1', 'select 1')"),
  denied('a wait', 'select pg_sleep(60)'),
  denied('the end of other sessions', 'select pg_terminate_backend(pid) from generate_series(1, 9) as pid'),
  denied('cancelled statements of others', "select exportd_query.cancel(1, '')"),
  denied('locks that exportd waits for', 'select pg_advisory_lock(1)'),
  denied('code', "do $$ begin execute 'drop table public.events'; end $$"),
  denied('another role', 'set local role pg_read_all_data'),
  denied('a written row', "update public.events set event = 'x'"),
  denied('a temporary table', 'create temporary table shadow (id integer)'),
  denied('its own rights', 'alter role current_user with bypassrls'),
];

/** All attacks on a project. */
export const attacksOn = (other: number): readonly Attack[] => [...onTenants(other), ...onServer];
