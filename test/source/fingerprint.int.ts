import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { rowsOfFingerprint } from '../../src/domain/fingerprint.ts';
import { hashBytes } from '../../src/source/postgresql_hash.ts';
import { allRows } from '../../src/source/row_selection.ts';
import type { RowRange } from '../../src/source/source.ts';
import { randomCases } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { hourOf, sourceOf } from './rows.ts';

const database = useTestDatabase();
beforeAll(async () => {
  // Rows in each minute, twins of one uuid, the first and the last instant of the hour, both neighbouring hours and
  // another project; persons and mappings that changed at random times.
  await database.pool.query(`
    insert into public.events (team_id, uuid, event, distinct_id, person_id, timestamp, inserted_at)
    select 1 + (n % 9 = 0)::int, md5((n / 2)::text)::uuid, 'event ' || n % 3, 'user ' || n % 7,
      md5('person ' || n % 7)::uuid, t, t
    from generate_series(1, 600) n,
      lateral (select timestamptz '2026-11-01 09:55Z' + n / 2 * interval '14.123456 seconds' as t) times;
    insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
    select 1, gen_random_uuid(), 'edge', 'edge', t, t
    from unnest(array['2026-11-01 10:00Z', '2026-11-01 10:59:59.999999Z', '2026-11-01 11:00Z']::timestamptz[]) t;
    insert into public.persons (team_id, id, properties, updated_at)
    select 1, md5('person ' || n)::uuid, '{"plan": "pro"}', timestamptz '2026-11-01 09:30Z' + n * interval '17 minutes'
    from generate_series(0, 6) n;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, updated_at)
    select 1, repeat('ä', n % 30) || n, md5('person ' || n % 8)::uuid, timestamptz '2026-11-01 09:30Z' + n * interval '41 seconds'
    from generate_series(1, 200) n`);
});

const expectedBuckets = async ({ interval }: RowRange, width: number, rows: string): Promise<unknown> =>
  (
    await database.pool.query<{ index: number; rows: number; sum: string }>(
      `select floor(extract(epoch from at - $1::timestamptz) * 1000 / $3)::int as index, count(*)::int as rows,
         mod(mod(sum(hash::numeric), 18446744073709551616) + 18446744073709551616, 18446744073709551616)::text as sum
       from (${rows}) as row where at >= $1 and at < $2 group by 1 order by 1`,
      [interval.start, interval.end, width],
    )
  ).rows;

const events =
  'select inserted_at as at, uuid_hash_extended(uuid, 0) as hash from public.events where team_id = 1';
const persons = `select greatest(m.updated_at, p.updated_at) as at, hashtextextended(m.distinct_id, 0) as hash
  from public.person_distinct_ids m left join public.persons p on p.team_id = m.team_id and p.id = m.person_id
  where m.team_id = 1`;

describe('the fingerprint of a range', () => {
  it.each([
    ['events', events, {}],
    ['events', `${events} and event = 'event 1'`, { include_events: ['event 1'] }],
    ['persons', persons, {}],
  ] as const)('counts and hashes the selected rows by bucket: %s', async (model, rows, selection) => {
    const source = sourceOf(database.url);
    const range = { ...hourOf(model), selection: { ...allRows, ...selection } };
    const fingerprint = await source.fingerprint(range);
    const { width_ms } = fingerprint;
    expect(width_ms).toBe(3_600_000 / 64);
    expect(fingerprint.buckets.length).toBeGreaterThan(40);
    expect(fingerprint.buckets).toEqual(await expectedBuckets(range, width_ms, rows));
    expect(rowsOfFingerprint(fingerprint)).toBe(await source.countRows(range));
    await source.close();
  });
});

describe('the hash', () => {
  it('is that of PostgreSQL, for uuids and for texts of any length', async () => {
    const hash = { high: 0, low: 0 };
    const signed = (): string => BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low)).toString();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uuid(), { minLength: 1, maxLength: 50 }),
        fc.array(
          fc.string({ unit: 'binary', maxLength: 60 }).filter((text) => !text.includes('\0')),
          {
            minLength: 1,
            maxLength: 50,
          },
        ),
        async (uuids, texts) => {
          const { rows } = await database.pool.query<{ hash: string }>(
            `select uuid_hash_extended(id, 0)::text as hash from unnest($1::uuid[]) id
             union all select hashtextextended(id collate "C", 0)::text from unnest($2::text[]) id`,
            [uuids, texts],
          );
          const ids = [
            ...uuids.map((uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex')),
            ...texts.map((text) => Buffer.from(text)),
          ];
          const hashes = ids.map((id) => {
            const surrounded = Buffer.concat([Buffer.of(1, 2, 3), id, Buffer.of(4, 5, 6)]);
            hashBytes(surrounded, 3, 3 + id.length, hash);
            return signed();
          });
          expect(hashes).toEqual(rows.map((row) => row.hash));
        },
      ),
      { numRuns: randomCases(20) },
    );
  });
});
