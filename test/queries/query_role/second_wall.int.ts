import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readSettings } from '../../../src/config/settings.ts';
import { compileQuery } from '@exportd/dialect/compile/compile_query';
import { searchKey } from '@exportd/dialect/resolve/statement';
import {
  connectQueriesToSource,
  queryRelationsOf,
  queryTransaction,
} from '../../../src/queries/query_source.ts';
import { readQueryProject } from '../../../src/queries/postgres_warehouse.ts';
import { readSourceSchema } from '../../../src/queries/source_schema.ts';
import { addWarehouseTable } from '../../../src/queries/warehouse_tables.ts';
import type { SourceConnections } from '../../../src/source/source_connection.ts';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { prepareQueryRole, queryRoleSettings } from '../../setup/query_role.ts';
import { attacksOn, secret } from './attacks.ts';

let api: ApiHarness;
let source: SourceConnections;

beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '1000' });
  const { database, projectId, otherProjectId } = api;
  await database.pool.query(
    `with given (team, name, person) as materialized (
       values (${projectId}, 'own', gen_random_uuid()), (${otherProjectId}, '${secret}', gen_random_uuid())
     ),
     events as (
       insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       select team, gen_random_uuid(), name, name, jsonb_build_object('of', name), now() from given
     ), persons as (
       insert into public.persons (team_id, id, properties)
       select team, person, jsonb_build_object('of', name) from given
     ), ids as (
       insert into public.person_distinct_ids (team_id, distinct_id, person_id) select team, name, person from given
     )
     insert into public.groups (team_id, group_type_index, group_key) select team, 0, name from given`,
  );
  await database.pool.query(
    `create table public.vault as select '${secret}'::text as secret;
     create view public.everything as select * from public.events;
     analyze public.events`,
  );
  const vault = { schema: 'public', name: 'vault', team_column: null };
  await addWarehouseTable(database.pool, { team_id: otherProjectId, name: 'vault', relation: vault });
  const everything = { schema: 'public', name: 'everything', team_column: 'team_id' };
  await addWarehouseTable(database.pool, {
    team_id: otherProjectId,
    name: 'everything',
    relation: everything,
  });
  await prepareQueryRole(database.url);
  source = connectQueriesToSource(
    readSettings({
      DATABASE_URL: database.url,
      EXPORTD_QUERY_SLOTS: '1',
      ...queryRoleSettings(database.url),
    }),
  );
});
afterAll(async () => {
  await source.close();
  await api.close();
});

const timeoutMs = 60_000;

/** SQLSTATEs of what the role may not do, and of what does not exist for it. */
const denials = ['42501', '25006', '42883', '42P01'];

/** Runs statements in the transaction of a query of the first project, as if the compiler had written them. */
async function runRaw(
  statements: readonly string[],
): Promise<{ readonly rows: unknown; readonly code?: string }> {
  try {
    return await source.read(
      queryTransaction(timeoutMs, api.projectId),
      undefined,
      async ({ connection }) => {
        let rows: unknown = [];
        for (const text of statements) ({ rows } = await connection.query({ text, values: [] }));
        return { rows };
      },
    );
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    return { rows: error.message, code: error.code ?? 'none' };
  }
}

describe('attacks', () => {
  const attacks = attacksOn(2);

  it('are more than thirty', () => {
    expect(attacks.length).toBeGreaterThan(30);
    expect(api.otherProjectId).toBe(2);
  });

  it.each(attacks)('as text of a query: $name', async ({ query, sql }) => {
    const text = query ?? sql.join('; ');
    const { status, body } = await api.call('POST', 'query/', {
      query: { kind: 'DialectQuery', query: text },
      refresh: 'force_blocking',
    });
    // The message of an error shows the text, which may name the secret.
    const shown = JSON.stringify(status === 200 ? body.results : []);
    expect([[200], [400]]).toContainEqual([status]);
    expect(shown).not.toContain(secret);
  });

  it.each(attacks)('as SQL past the compiler: $name', async ({ sql, expected }) => {
    const { rows, code } = await runRaw(sql);
    expect(expected === 'denied' ? denials : [undefined]).toContain(code);
    expect(JSON.stringify(rows)).not.toContain(secret);
  });

  it('would succeed under the role of the source', async () => {
    const { pool } = api.database;
    const found = [];
    for (const { sql, expected } of attacks) {
      // The functions of exportd_query refuse anybody without a signature.
      if (expected !== 'own rows' || sql.some((text) => text.includes('exportd_query'))) continue;
      const { rows } = await pool.query(sql.join(';')).catch((error: unknown) => ({ rows: String(error) }));
      found.push(String(rows).includes('division by zero') || JSON.stringify(rows).includes(secret));
    }
    expect(found.length).toBeGreaterThan(5);
    expect(found).not.toContain(false);
  });
});

describe('a compiler that filters by the wrong project', () => {
  const queries = [
    'SELECT event FROM events',
    'SELECT properties.of, count() FROM events GROUP BY properties.of',
    'SELECT person.properties.of, event FROM events',
    'SELECT person.properties.of, event, session.$start_timestamp FROM events ORDER BY timestamp DESC LIMIT 10',
    `SELECT event FROM events WHERE person.properties.of = '${secret}'`,
    'SELECT pdi.distinct_id FROM events',
    'SELECT key FROM groups',
    'SELECT properties.of FROM persons',
    'SELECT event FROM everything',
    'SELECT secret FROM vault',
    'SELECT distinct_id FROM events WHERE distinct_id IN (SELECT distinct_id FROM person_distinct_ids)',
  ];

  /** The statement that the other project's own query runs, in a transaction of the given project. */
  const runCompiled = async (query: string, teamId: number): Promise<readonly unknown[]> => {
    const { project, now } = await readQueryProject(api.database.pool, api.otherProjectId);
    const relations = queryRelationsOf(
      readSettings({ DATABASE_URL: api.database.url, ...queryRoleSettings(api.database.url) }),
    );
    return source.read(queryTransaction(timeoutMs, teamId), undefined, async ({ connection }) => {
      const schema = await readSourceSchema(connection, relations, project);
      const found = new Map<string, readonly (string | null)[]>();
      const compile = () =>
        compileQuery(
          query,
          {
            teamId: api.otherProjectId,
            timezone: 'UTC',
            weekStartDay: 'sunday',
            now: now.toISOString(),
            schema,
          },
          { found, rows: { defaultLimit: 100, maxRows: 100 } },
        );
      for (const search of compile().searches) {
        const { rows } = await connection.query<{ id: string }>({
          text: search.sql,
          values: [...search.parameters],
        });
        expect(rows).toHaveLength(Number(teamId === api.otherProjectId));
        found.set(
          searchKey(search),
          rows.map(({ id }) => id),
        );
      }
      const { sql, parameters } = compile();
      const { rows } = await connection.query<object>({ text: sql, values: [...parameters] });
      return rows;
    });
  };

  it.each(queries)('reads nothing: %s', async (query) => {
    expect(JSON.stringify(await runCompiled(query, api.otherProjectId))).toContain(secret);
    expect(await runCompiled(query, api.projectId)).toEqual([]);
  });
});

describe('a transaction', () => {
  it('cannot use the signature of another one', async () => {
    const seen = await source.read(
      queryTransaction(timeoutMs, api.otherProjectId),
      undefined,
      async ({ connection }) => {
        const { rows } = await connection.query<Record<string, string>>('show "exportd.team_signature"');
        return Object.values(rows[0] ?? {}).join('');
      },
    );
    expect(seen).toMatch(/^[0-9a-f]{64}$/);
    // The pool has one connection, so that even the process is the same.
    const { code } = await runRaw([
      `set local exportd.team_id = '${api.otherProjectId}'`,
      `set local exportd.team_signature = '${seen}'`,
      'select event from public.events',
    ]);
    expect(code).toBe('42501');
  });

  it('reads nothing unless exportd names a project', async () => {
    const read = source.read({}, undefined, ({ connection }) =>
      connection.query('select from public.events'),
    );
    await expect(read).rejects.toMatchObject({ code: '42501' });
  });

  it.each(["'pg_temp', 'public'", "'public', 'pg_catalog'", "'exportd_query'"])(
    'reads its own rows with the search path %s',
    async (path) => {
      const { rows } = await runRaw([`set local search_path = ${path}`, 'select event from public.events']);
      expect(rows).toEqual([{ event: 'own' }]);
    },
  );

  it('leaves nothing in the session for the next one', async () => {
    await runRaw([
      "set session search_path = 'public'",
      "set session exportd.team_id = '2'",
      'listen planted',
    ]);
    const next = await source.read({}, undefined, async ({ connection }) => [
      (await connection.query('show search_path')).rows,
      (await connection.query('show exportd.team_id')).rows,
    ]);
    expect(next).toEqual([[{ search_path: '""' }], [{ 'exportd.team_id': '' }]]);
  });

  it('is cancelled in PostgreSQL by exportd', async () => {
    const stop = new AbortController();
    const reading = source.read(queryTransaction(timeoutMs, api.projectId), stop.signal, ({ connection }) => {
      const counted = connection.query('select count(*) from generate_series(1, 10000000000)');
      stop.abort(new Error('stopped by the test'));
      return counted;
    });
    await expect(reading).rejects.toThrow('stopped by the test');
    const { rows } = await api.database.pool.query(
      `select from pg_stat_activity where usename = 'exportd_query' and datname = current_database() and state = 'active'`,
    );
    expect(rows).toEqual([]);
  });
});
