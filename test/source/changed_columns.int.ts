import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import type { Source } from '../../src/source/source.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { blocksOf, hourOf, rowsOf, sourceOf } from './rows.ts';

const database = useTestDatabase();
const events = hourOf('events');
const columns = [
  'team_id',
  'uuid',
  'event',
  'distinct_id',
  'person_id',
  'properties',
  'elements_chain',
  'timestamp',
  'created_at',
  'inserted_at',
];
const replaceView = (more: readonly string[]) =>
  database.pool.query(`drop view if exists public.own_events;
    create view public.own_events as select ${[...columns, ...more].join(', ')} from public.events`);

let source: Source;
beforeAll(() =>
  database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, person_id, person_properties, timestamp, inserted_at)
    values (1, gen_random_uuid(), 'signup', 'ada', md5('ada')::uuid, '{"at": "the time"}', now(), '2026-11-01 10:30Z');
    insert into public.persons (team_id, id, properties, updated_at)
    values (1, md5('ada')::uuid, '{"at": "present"}', '2026-11-01 10:30Z');
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
    values (1, 'ada', md5('ada')::uuid, '2026-11-01 10:30Z')`),
);
afterEach(() => source.close());

const readPerson = async (): Promise<unknown> => {
  const [row] = (await blocksOf(source, events)).flatMap(rowsOf);
  return row?.person_properties;
};
const openSource = () => sourceOf(database.url, { EXPORTD_EVENTS_RELATION: 'own_events' });

describe('columns that are known from the last minute', () => {
  it('and are gone are noticed by the statement that fails, which is sent again', async () => {
    await replaceView(['person_properties']);
    source = openSource();
    expect(await readPerson()).toEqual({ at: 'the time' });
    await replaceView([]);
    expect(await readPerson()).toEqual({ at: 'present' });
  });

  it('lack no persons that have appeared since, where they decide which rows are selected', async () => {
    await replaceView(['person_properties']);
    source = openSource();
    const filters = [{ type: 'person', key: 'plan', operator: 'is_not_set' }] as const;
    const selected = { ...events, selection: { ...events.selection, filters: [...filters] } };
    const dependsOnPersons = async () => (await source.fingerprint(selected)).all_events === true;
    await database.pool.query('alter table public.persons rename to hidden');
    let before = true;
    try {
      before = await dependsOnPersons();
    } finally {
      await database.pool.query('alter table public.hidden rename to persons');
    }
    expect([before, await dependsOnPersons()]).toEqual([false, true]);
  });

  it.each<[string, () => Promise<number>]>([
    ['page', async () => (await blocksOf(source, events)).flatMap(rowsOf).length],
    ['fingerprint', async () => rowsOfFingerprint(await source.fingerprint(events))],
  ])('and have another name are noticed by a %s, whose error is that of the columns', async (_, read) => {
    await replaceView([]);
    source = openSource();
    expect(await read()).toBe(1);
    await database.pool.query('alter view public.own_events rename column uuid to identifier');
    await expect(read()).rejects.toMatchObject({ name: 'InvalidRelation' });
    await database.pool.query('alter view public.own_events rename column identifier to uuid');
    expect(await read()).toBe(1);
  });
});
