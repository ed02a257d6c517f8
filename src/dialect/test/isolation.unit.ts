import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { compileQuery } from '../compile/compile_query.ts';
import type { Project } from '../resolve/statement.ts';
import type { SourceRelation } from '../schema.ts';
import { grammar } from './grammar.ts';
import { functionsOf } from './functions_of.ts';
import { project, schema, teamId } from './project.ts';
import { RandomCalls } from './random_calls.ts';
import { RandomQueries } from './random_queries.ts';
import { relationsOf } from './relations_of.ts';
import { edgeValueProject } from './edge_values.ts';
import { randomCases } from '../../../test/setup/effort.ts';

/** Source relations with a team column, and the one warehouse table without. */
const teamRelations = new Set(
  [
    'events',
    'persons',
    'person_distinct_ids',
    'session_replay_events',
    'groups',
    'orders',
    'cohort_people',
  ].map((name) => `public.${name}`),
);
const projectRelation = 'public.plans';

async function expectIsolated(query: string): Promise<void> {
  const { sql, parameters, searches } = compileQuery(query, project);
  for (const one of [{ sql, parameters }, ...searches])
    for (const { name, team } of await relationsOf(one.sql, one.parameters)) {
      if (name === projectRelation) continue;
      expect(teamRelations).toContain(name);
      expect({ name, team }).toEqual({ name, team: String(teamId) });
    }
}

const compiles = (query: string, of: Project = project): boolean => {
  try {
    compileQuery(query, of);
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'DialectError') return false;
    throw error;
  }
};

describe('the team filter', () => {
  it('applies to every relation of random queries', async () => {
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        await expectIsolated(new RandomQueries(draw).query());
      }),
      { numRuns: randomCases(40) },
    );
  });

  it('applies to every relation of generated queries that compile', async () => {
    const vocabulary = {
      tables: ['events', 'persons', 'sessions', 'person_distinct_ids', 'groups'],
      fields: ['distinct_id', 'properties.plan', 'properties', 'id', 'event', 'person.properties.email'],
      functions: ['count', 'lower', 'toString', 'coalesce', 'if', 'max'],
    };
    const { query } = grammar(vocabulary, 2);
    const made: string[] = [];
    // About one in a hundred generated queries compiles.
    while (made.length <= 5) made.push(...fc.sample(query, 200).filter((one) => compiles(one)));
    for (const one of made) await expectIsolated(one);
    expect(made.length).toBeGreaterThan(5);
  });

  it.each([
    'SELECT * FROM events WHERE team_id = 42 OR 1 = 1',
    'SELECT count() FROM events AS team_id',
    'SELECT count() FROM events WHERE (SELECT count() FROM persons) > 0',
    'SELECT person.properties.email, session.$session_duration, pdi.person.properties.email FROM events',
    'SELECT person.properties.email, session.$session_duration FROM events ORDER BY timestamp DESC LIMIT 10',
    "SELECT event FROM events WHERE person.properties.email = 'a' AND team_id = 42",
    'WITH e AS (SELECT * FROM events) SELECT * FROM e UNION ALL SELECT * FROM e',
    'SELECT p.* FROM (SELECT * FROM persons) AS p RIGHT JOIN session_replay_events AS r ON r.person_id = p.id',
    'SELECT group_0.properties.name, e.group_4.key, g.* FROM events AS e LEFT JOIN groups AS g ON g.key = e.$group_0',
    'SELECT DISTINCT ON (event) event FROM events ORDER BY event',
    'SELECT event FROM events GROUP BY ROLLUP(event) LIMIT 1 BY event',
    'SELECT event, uniq(person.id) AS n FROM events GROUP BY event WITH TOTALS HAVING n > 1 LIMIT 10 PERCENT',
    'SELECT arrayMap(x -> x, groupArray(person.properties.email) OVER (ORDER BY session.$session_duration)) FROM events',
    "SELECT item, count() FROM events LEFT ARRAY JOIN splitByChar('a', event) AS item GROUP BY item",
    'SELECT groupArray(e) FROM (SELECT event AS e FROM events ORDER BY timestamp)',
    'WITH e AS (SELECT event AS e FROM events ORDER BY timestamp) SELECT groupArray(e) FROM e WHERE e IN (SELECT name FROM plans)',
    'SELECT count() FROM events WHERE person_id IN (SELECT person_id FROM events WHERE exists(SELECT 1 FROM persons))',
    'SELECT person.properties.email FROM session_replay_events UNION ALL SELECT $entry_current_url FROM sessions',
    'SELECT s.session_id FROM sessions AS s SAMPLE 1/2 LEFT JOIN events AS e SAMPLE 0.1 OFFSET 0.2 ON e.event = s.distinct_id OR 1 = 1',
    'SELECT o.id FROM events AS e FULL JOIN warehouse.orders AS o USING (distinct_id)',
    'SELECT o.id FROM warehouse.orders AS o LEFT ANTI JOIN events AS e ON e.distinct_id = o.distinct_id AND e.event < o.distinct_id',
    'SELECT e.person.properties.email FROM persons AS p RIGHT ANY JOIN events AS e ON p.id = e.person_id OR p.properties.email = e.event',
    'SELECT e.event, p.id FROM events AS e ANY JOIN persons AS p ON p.id = e.person_id LEFT SEMI JOIN sessions AS s ON s.distinct_id = e.distinct_id',
    "SELECT person_id, pdi.person.properties.x FROM events WHERE person_id = '00000000-0000-0000-0000-0000000000ad'",
    'SELECT is_identified, pdi.distinct_id, p.pdi.person_id, p.is_identified FROM persons AS p',
    'SELECT person.is_identified, person.properties.email, person_id FROM raw_session_replay_events',
    'SELECT c.name, e.person.is_identified FROM system.cohorts AS c JOIN events AS e ON e.event = c.name',
    'SELECT event, arrayJoin(groupArray(person.is_identified)) AS i FROM events GROUP BY event HAVING i',
    'SELECT c.column_name, e.event FROM system.information_schema.columns AS c JOIN events AS e ON e.event = c.table_name',
    'SELECT 1 FROM events WHERE distinct_id IN (SELECT distinct_id FROM `warehouse.orders`)'.replaceAll(
      '`',
      '',
    ),
  ])('applies to every relation of %s', async (query) => {
    await expectIsolated(query);
  });

  it('leaves the information schema with what the project itself can read, and no relation of the database', async () => {
    const rowsOfSchema = (of: Project): string => {
      const columns = compileQuery('SELECT * FROM system.information_schema.columns', of);
      const tables = compileQuery('SELECT * FROM system.information_schema.tables', of);
      return [...columns.parameters, ...tables.parameters].join(' ');
    };
    const other = { ...project, teamId: 42, schema: { ...schema, warehouse: new Map() } };
    expect(rowsOfSchema(project)).toContain('warehouse.orders');
    expect(rowsOfSchema(other)).not.toMatch(/orders|plans/);
    expect(rowsOfSchema(project)).not.toMatch(/public\.|pg_|is_deleted"?,1,"Boolean"|exportd/);
    const { sql, parameters } = compileQuery(
      'SELECT c.*, row_count FROM system.information_schema.columns AS c JOIN system.information_schema.tables AS t USING (table_name)',
      project,
    );
    expect(await relationsOf(sql, parameters)).toEqual([]);
  });

  it('applies to every version of the rows of a relation that may have several', async () => {
    const versions = (of: SourceRelation): SourceRelation => ({ ...of, uniqueKeys: [] });
    const ofVersions = {
      persons: versions(schema.persons),
      personDistinctIds: versions(schema.personDistinctIds),
    };
    const query = 'SELECT person_id, person.properties.x, p.id FROM events JOIN persons AS p ON 1 = 1';
    const { sql, parameters } = compileQuery(query, { ...project, schema: { ...schema, ...ofVersions } });
    const read = await relationsOf(sql, parameters);
    expect(read.map(({ name, team }) => [name, team]).sort()).toEqual(
      ['events', 'person_distinct_ids', 'persons', 'persons'].map((name) => [
        `public.${name}`,
        String(teamId),
      ]),
    );
  });
});

describe('PostgreSQL functions', () => {
  // `set_masklen` and its like compute a value; `set_config` changes the session.
  const harmful =
    /^pg_(?!catalog)|^lo_|dblink|^set_(?!masklen$|bit$|byte$)|setting|_to_xml|_to_json$|^txid|^inet_|^version$|nextval|setval|currval|file|sleep|notify|lock/;

  it('that statements call neither read server state nor change anything', async () => {
    const called = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const calls = new RandomCalls((bound) => draw(fc.nat, { max: bound - 1 }));
        const query = calls.query();
        if (!compiles(query, edgeValueProject)) return;
        for (const name of await functionsOf(compileQuery(query, edgeValueProject).sql)) called.add(name);
      }),
      { numRuns: randomCases(150) },
    );
    expect(called.size).toBeGreaterThan(60);
    expect([...called].filter((name) => harmful.test(name))).toEqual([]);
  });
});

describe('values', () => {
  const payloads = [
    "'; drop table events; --",
    '" or 1=1 --',
    "$1'); select pg_sleep(10); --",
    "\\'; select 1",
    'a"b`c',
    '$$x$$',
    '${x}',
  ];

  it.each(payloads)('are never part of the statement: %s', async (payload) => {
    const text = payload.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
    const name = payload.replaceAll('\\', '\\\\').replaceAll('`', '\\`');
    const query = `SELECT '${text}' AS \`${name}\`, properties.\`${name}\`, arrayMap(\`${name}\` -> \`${name}\`, ['${text}'])
      FROM events AS \`${name}\` WHERE \`${name}\`.event = '${text}' OR event LIKE '${text}' GROUP BY 1, 2`;
    const { sql, parameters } = compileQuery(query, project);
    expect(sql).not.toContain(payload);
    expect(parameters).toContain(payload);
    await expectIsolated(query);
  });

  it('of placeholders are not either', () => {
    const placeholders = new Map([['x', { kind: 'value', value: "'; select 1" } as const]]);
    const { sql, parameters } = compileQuery('SELECT {x}', project, { placeholders });
    expect(sql).not.toContain("'; select 1");
    expect(parameters).toContain("'; select 1");
  });
});

describe('forbidden queries', () => {
  it.each([
    'SELECT pg_sleep(10)',
    "SELECT current_setting('server_version')",
    "SELECT set_config('a', 'b', false)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT dblink('a', 'b')",
    "SELECT query_to_xml('select 1', true, true, '')",
    'SELECT version()',
    'SELECT currentUser()',
    "SELECT * FROM file('/etc/passwd')",
    "SELECT * FROM url('http://a')",
    'SELECT * FROM generate_series(1, 10)',
    'SELECT * FROM pg_class',
    'SELECT * FROM pg_catalog.pg_authid',
    'SELECT * FROM information_schema.tables',
    'SELECT * FROM public.events',
    'SELECT * FROM system.tables',
    'SELECT * FROM system.information_schema.schemata',
    'SELECT * FROM system.columns',
    'SELECT relation FROM system.information_schema.tables',
    'SELECT * FROM exportd.api_keys',
    'SELECT ctid FROM events',
    'SELECT xmin FROM events',
    'SELECT tableoid FROM persons',
    'SELECT is_deleted FROM persons',
    'DROP TABLE events',
    'DELETE FROM events',
    'INSERT INTO events SELECT * FROM events',
    'UPDATE events SET event = 1',
    'SELECT 1; SELECT 2',
    'SELECT 1;; SELECT 2',
    'SELECT 1 /* ; */ ; DELETE FROM events',
    'SELECT 1 -- ;\n; DROP TABLE events',
    "SELECT * FROM dblink('host=x', 'select 1')",
    "SELECT * FROM s3('http://a')",
    'SELECT * FROM pg_stat_activity',
    'SELECT * FROM "pg_catalog"."pg_user"',
    'SELECT * FROM `public.events`',
    'SELECT * FROM "events; drop table events"',
    'SELECT events.ctid, events.tableoid FROM events',
    'SELECT properties::regclass FROM events',
    "SELECT 'pg_class'::regclass",
    "SELECT CAST('1' AS oid)",
    "SELECT nextval('x')",
    'SELECT pg_terminate_backend(1)',
    'SELECT pg_advisory_lock(1)',
    "SELECT pg_notify('a', 'b')",
    'SELECT sleep(3), sleepEachRow(1)',
    "SELECT url('http://a', 'CSV')",
    'SELECT current_user',
    'SELECT session_user',
    'SELECT current_database()',
    'WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x',
    'WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x',
    'SELECT * FROM events LIMIT ALL',
    'VALUES (1)',
    'TABLE events',
    'BEGIN',
    'ALTER TABLE events DROP COLUMN team_id',
    'CREATE TABLE x (a int)',
    'TRUNCATE events',
    'GRANT ALL ON events TO public',
    'VACUUM events',
    'DO $$ BEGIN END $$',
    'LISTEN x',
    'PREPARE x AS SELECT 1',
    'SELECT 1; DROP TABLE events',
    'SELECT * FROM events FOR UPDATE',
    'SELECT * INTO copied FROM events',
    'COPY events TO STDOUT',
    'SET role postgres',
    'EXPLAIN SELECT 1',
    'CALL x()',
  ])('%s is rejected', (query) => {
    expect(compiles(query)).toBe(false);
  });
});
