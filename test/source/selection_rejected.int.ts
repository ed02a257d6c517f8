import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { classifyError } from '../../src/failures/classify_error.ts';
import { allRows, type RowSelection } from '../../src/source/row_selection.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { blocksOf, sourceOf } from './rows.ts';

const rangeOf = (selection: Partial<RowSelection>): RowRange => ({
  model: 'events',
  team_id: 1,
  interval: { start: '2026-11-01T10:00:00Z', end: '2026-11-01T11:00:00Z' },
  selection: { ...allRows, ...selection },
});
const filtered = rangeOf({
  filters: [{ type: 'event_metadata', key: 'event', operator: 'regex', value: '^s' }],
});

let database: TestDatabase;
let source: Source;
beforeAll(async () => {
  database = await createTestDatabase();
  // Rows can be read, but their events cannot be matched with a regular expression.
  await database.pool.query(
    `create view odd_events as select * from events;
     insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     values (1, gen_random_uuid(), 'signup', 'ada', '{}', now(), '2026-11-01 10:30Z');
     create schema odd;
     create function odd.reject(text, text) returns boolean language plpgsql as
       $$ begin raise exception 'There is no such operator.' using errcode = 'undefined_function'; end $$;
     create operator odd.~ (leftarg = text, rightarg = text, function = odd.reject);
     do $$ begin execute format('alter database %I set search_path = odd, pg_catalog, public', current_database()); end $$`,
  );
  source = sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'odd_events' });
});
afterAll(async () => {
  await source.close();
  await database.drop();
});

const rejectionOf = async (read: () => Promise<unknown>) =>
  classifyError(
    await read().then(
      () => undefined,
      (error: unknown) => error,
    ),
  );

describe('a statement that PostgreSQL rejects', () => {
  it.each([
    ['a count', () => source.countRows(filtered)],
    ['a fingerprint', () => source.fingerprint(filtered)],
    ['a page', () => blocksOf(source, filtered)],
  ])("is the tenant's fault if only its filters are rejected: %s", async (_, read) => {
    const rejection = await rejectionOf(read);
    expect(rejection).toMatchObject({ type: 'SelectionRejected', owner: 'tenant', permanent: true });
    expect(rejection.message).toContain('42883');
  });

  it('leaves exports without filters alone', async () => {
    expect(await source.countRows(rangeOf({}))).toBe(1);
  });

  it.each([
    ['a missing column', 'alter view odd_events rename column uuid to identifier'],
    ['a missing relation', 'alter view odd_events rename column identifier to uuid; drop view odd_events'],
  ])("is the operator's fault otherwise: %s", async (_, change) => {
    await database.pool.query(change);
    expect(await rejectionOf(() => source.countRows(filtered))).toMatchObject({
      owner: 'operator',
      permanent: false,
    });
  });
});
