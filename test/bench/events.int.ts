import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { insertEventRows } from './events.ts';
import { discardCopy, exportStatements } from './exports/programs.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const start = new Date('2026-01-01T00:00:00Z');
const interval = { start: start.toISOString(), end: new Date(start.getTime() + 3_600_000).toISOString() };
const count = 2_000;

async function insert(teamId: number, ranges: readonly (readonly [number, number])[]): Promise<void> {
  for (const [first, end] of ranges)
    await database.pool.query(insertEventRows(teamId, start, { first, end, count }));
}

async function digestOf(teamId: number): Promise<string | undefined> {
  const { rows } = await database.pool.query<{ digest: string }>(
    `select md5(string_agg((to_jsonb(events) - 'team_id')::text, ',' order by inserted_at, uuid)) as digest
     from public.events where team_id = $1`,
    [teamId],
  );
  return rows[0]?.digest;
}

describe('the events of the benchmark', () => {
  it('are the same for any split into statements, all in the hour', async () => {
    await insert(1, [[0, count]]);
    await insert(2, [
      [1_500, count],
      [0, 700],
      [700, 1_500],
    ]);
    expect(await digestOf(1)).toEqual(await digestOf(2));
    const { rows } = await database.pool.query<{ count: number; ids: number }>(
      `select count(*), count(distinct uuid) as ids from public.events
       where team_id = 1 and inserted_at >= $1 and inserted_at < $2`,
      [interval.start, interval.end],
    );
    expect(rows).toEqual([{ count, ids: count }]);
  });

  it('arrive by nine tenths in a crowded minute, all in the hour', async () => {
    for (const [teamId, crowded, seconds] of [
      [5, 'minute', 60],
      [6, 'second', 1],
    ] as const) {
      await database.pool.query(insertEventRows(teamId, start, { first: 0, end: count, count, crowded }));
      const { rows } = await database.pool.query<{ all: number; most: number }>(
        `select count(*) as all, count(*) filter (
           where inserted_at >= $2::timestamptz + $4 * interval '1 second'
             and inserted_at < $2::timestamptz + ($4 + $5) * interval '1 second') as most
         from public.events where team_id = $1 and inserted_at >= $2 and inserted_at < $3`,
        [teamId, interval.start, interval.end, (3_600 - seconds) / 2, seconds],
      );
      expect(rows).toEqual([{ all: count, most: count * 0.9 }]);
    }
  });

  it('are all read by the statement of the floor', async () => {
    await insert(3, [[0, count]]);
    const { copyBinary } = await exportStatements(database.url, 3, interval);
    const bytes = await discardCopy(database.url, copyBinary);
    expect(bytes / count).toBeGreaterThan(400);
    expect(bytes / count).toBeLessThan(500);
  });

  it('have the fields of the export in the statement of the pipeline', async () => {
    await insert(4, [[0, 1]]);
    const { copyJson } = await exportStatements(database.url, 4, interval);
    const [, select = ''] = /^copy \((.*)\) to stdout$/s.exec(copyJson) ?? [];
    const { rows } = await database.pool.query<{ row_to_json: Record<string, unknown> }>(select);
    expect(Object.keys(rows[0]?.row_to_json ?? {})).toEqual([
      'uuid',
      'timestamp',
      '_inserted_at',
      'created_at',
      'event',
      'properties',
      'distinct_id',
      'elements_chain',
      'person_properties',
      'person_id',
    ]);
  });
});
