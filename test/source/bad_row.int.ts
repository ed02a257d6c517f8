import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { classifyError } from '../../src/failures/classify_error.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { blocksOf, hourOf, sourceOf } from './rows.ts';

const database = useTestDatabase();
const query = async (sql: string): Promise<void> => {
  await database.pool.query(sql);
};
/** Many rows, of which four are in the same millisecond. */
beforeEach(() =>
  query(`truncate events, persons, person_distinct_ids; drop schema if exists bad cascade; create schema bad;
    insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp, created_at, inserted_at)
    select 1, md5('row ' || n)::uuid, 'event ' || n, 'user', jsonb_build_object('n', n), t, t, t
    from generate_series(1, 200) n, lateral (select case when n <= 4
      then timestamptz '2026-11-01 10:30:00.0001Z' + n * interval '10 microseconds'
      else timestamptz '2026-11-01 10:00Z' + n * interval '17.3 seconds' end as t) times`),
);
afterEach(() => query('drop schema if exists bad cascade'));

const failureOf = async (
  relations: Readonly<Record<string, string>>,
  model: 'events' | 'persons' = 'events',
) => {
  const source = sourceOf(database.url, relations);
  const error: unknown = await blocksOf(source, hourOf(model)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  await source.close();
  return classifyError(error);
};
const uuidOf = async (n: number): Promise<string> =>
  (await database.pool.query<{ id: string }>(`select md5('row ' || $1::int)::uuid as id`, [n])).rows[0]?.id ??
  '';

const viewWith = (columns: Readonly<Record<string, string>>): string => {
  const all = ['team_id', 'uuid', 'event', 'distinct_id', 'person_id', 'properties', 'person_properties'];
  const rest = ['elements_chain', 'timestamp', 'created_at', 'inserted_at'];
  return `create view bad.events as select ${[...all, ...rest]
    .map((name) => `${columns[name] ?? `"${name}"`} as "${name}"`)
    .join(', ')} from public.events`;
};

describe('a row that PostgreSQL cannot read', () => {
  it.each([
    [3, 'properties', `case event when 'event 3' then '{broken' else properties::text end`, '22P02'],
    [4, 'properties', `case event when 'event 4' then '{broken' else properties::text end`, '22P02'],
    [150, 'timestamp', `case event when 'event 150' then 'not a time' else timestamp::text end`, '22007'],
    [77, 'event', `case event when 'event 77' then (1 / (length(event) - 8))::text else event end`, '22012'],
  ])('is named with its column: %i, %s', async (row, column, expression, state) => {
    await query(viewWith({ [column]: expression }));
    const { message, ...rest } = await failureOf({ EXPORTD_EVENTS_RELATION: 'bad.events' });
    expect(rest).toEqual({ type: 'InvalidSourceValue', owner: 'operator', permanent: false });
    expect(message).toContain(`It is the row ${await uuidOf(row)}, inserted at 2026-11-01T10:`);
    expect(message).toContain(`its column ${column}.`);
    expect(message).toContain(`, SQLSTATE ${state}. It is`);
    expect(message).not.toMatch(/broken|not a time/);
  });

  it('is named if PostgreSQL reports damaged data, and is no unavailable database', async () => {
    await query(`create function bad.damaged(value text) returns text immutable language plpgsql as $$ begin
      if value = 'event 42' then raise exception 'missing chunk number 0 for toast value' using errcode = 'data_corrupted'; end if;
      return value; end $$`);
    await query(viewWith({ event: 'bad.damaged(event)' }));
    const { message, type } = await failureOf({ EXPORTD_EVENTS_RELATION: 'bad.events' });
    expect(type).toBe('InvalidSourceValue');
    expect(message).toContain(`It is the row ${await uuidOf(42)}`);
    expect(message).toContain('missing chunk number 0 for toast value, SQLSTATE XX001');
  });

  it('is named by its time if it is a person, whose id is of an application', async () => {
    await query(`insert into persons (team_id, id, properties, created_at, updated_at, version)
      select 1, md5(n::text)::uuid, '{}', now(), timestamptz '2026-11-01 10:00Z' + (n - 3000) * interval '1 minute', n from generate_series(1, 3009) n;
      insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
      select 1, 'secret ' || n, md5(n::text)::uuid, n, timestamptz '2026-11-01 10:00Z' + (n - 3000) * interval '1 minute' from generate_series(1, 3009) n;
      analyze;
      create view bad.persons as select team_id, id, case version when 3005 then '{broken' else properties::text end as properties,
        created_at, updated_at, version, is_deleted from persons`);
    const { message, type } = await failureOf({ EXPORTD_PERSONS_RELATION: 'bad.persons' }, 'persons');
    expect(type).toBe('InvalidSourceValue');
    expect(message).toContain('It is a row that changed at 2026-11-01T10:05:00');
    expect(message).not.toContain('secret');
  });
});
