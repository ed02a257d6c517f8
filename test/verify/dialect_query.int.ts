import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { VerificationReport } from '../../src/verify/report.ts';
import { createVerifyHarness, hours, remarksOf, teamId, type VerifyHarness } from './verify_harness.ts';

const eventsPerHour = 60;
let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(eventsPerHour);
  await harness.database.pool.query(
    `update events set properties = jsonb_build_object('n', number, 'text', repeat('ä', number::int)),
       timestamp = case when number % 7 = 0 then timestamptz '0001-01-01Z' else timestamp end
     from (select ctid as row_location, row_number() over (order by inserted_at, uuid) as number from events) numbered
     where events.ctid = row_location`,
  );
});
afterAll(() => harness.close());

const kindsOf = ({ findings }: VerificationReport) => findings.map(({ kind, count }) => [kind, count]);

/** Columns of every type; some numbers are infinite or NaN. */
const columns = `upper(event) as name, properties, properties.text as text, toInt(properties.n) as n,
  toInt(properties.n) / 3 as third, 1 / (toInt(properties.n) % 5) as quotient, toDate(timestamp) as day, timestamp,
  toInt(properties.n) > 50 as late, [toInt(properties.n)] as list, toDecimal(properties.n, 3) as exact, person_id`;

const formats = [
  { file_format: 'JSONLines', compression: 'gzip' },
  { file_format: 'CSV', compression: null },
  { file_format: 'Parquet', compression: 'zstd' },
];

describe.each(formats)('an export of a query to $file_format', (config) => {
  it('is compared by keys if its files contain them, else by values in row order', async () => {
    for (const query of [
      `select uuid, _inserted_at, ${columns} from events where toInt(properties.n) % 4 != 0`,
      `select ${columns} from events where toInt(properties.n) % 4 != 0`,
    ]) {
      const exported = await harness.exportHours({ config, query });
      const deep = await exported.verify({ deep: true });
      expect(deep).toMatchObject({ ok: true, findings: [] });
      expect(remarksOf(deep)).toEqual([]);
      expect(await exported.verify()).toMatchObject({
        ok: true,
        totals: { rows: (eventsPerHour * hours.length * 3) / 4 },
      });
    }
  });
});

describe('files of a query without keys', () => {
  it('differ from the source when rows are missing, unexpected or changed', async () => {
    const exported = await harness.exportHours({ query: `select properties.n as n, event from events` });
    await exported.rewrite(1, (lines) => [
      ...lines.slice(0, 10),
      ...lines.slice(12, 30),
      (lines[30] ?? '').replace(/"n":"(\d+)"/, '"n":"$1000"'),
      ...lines.slice(31),
    ]);
    const report = await exported.verify({ deep: true });
    expect(kindsOf(report)).toEqual([
      ['missing', 3],
      ['unexpected', 1],
    ]);
    const { rows } = await harness.database.pool.query<{ uuid: string }>(
      `select uuid from events where team_id = $1 and inserted_at >= $2 order by inserted_at, uuid offset 10 limit 2`,
      [teamId, hours[1]?.start],
    );
    expect(report.findings[0]?.rows.slice(0, 2).map(({ id }) => id)).toEqual(rows.map(({ uuid }) => uuid));
    expect(report.findings[1]?.rows).toEqual([{ id: 'row 29 of its files' }]);
    expect(kindsOf(await exported.verify())).toEqual([['missing', 2]]);
  });
});

describe('an export of a query over persons', () => {
  it('is compared if its files contain keys, else counted', async () => {
    await harness.database.pool.query(
      `insert into persons (team_id, id, properties, updated_at)
         select $1, md5(n::text)::uuid, jsonb_build_object('n', n), timestamptz '2026-01-01 10:30Z' from generate_series(1, 5) n`,
      [teamId],
    );
    await harness.database.pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
         select $1, 'd' || n, md5(n::text)::uuid, timestamptz '2026-01-01 10:20Z' from generate_series(1, 5) n`,
      [teamId],
    );
    const keyed = await harness.exportHours({
      model: 'persons',
      query: `select _inserted_at, distinct_id, properties.n as n from persons where properties.n != '2'`,
    });
    const compared = await keyed.verify({ deep: true });
    expect(compared).toMatchObject({ ok: true, findings: [], totals: { rows: 4 } });
    expect(remarksOf(compared)).toEqual([]);
    const plain = await harness.exportHours({
      model: 'persons',
      query: `select properties.n as n from persons`,
    });
    const report = await plain.verify({ deep: true });
    expect(report).toMatchObject({ ok: true, totals: { rows: 5 } });
    expect(remarksOf(report)[0]?.detail).toMatch(/not compared with the source/);
  });
});

describe('an export of a query that selects events by their person', () => {
  it('is compared with the events whose person is selected', async () => {
    await harness.database.pool.query(
      `insert into persons (team_id, id, properties, created_at, updated_at, version)
       select team_id, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid,
         jsonb_build_object('plan', case team_id when $1 then case n % 2 when 0 then 'pro' else 'free' end else 'pro' end),
         '2025-12-31Z', '2025-12-31Z', 1 from generate_series(1, 4) n, (values ($1), ($1 + 1)) teams (team_id)`,
      [teamId],
    );
    await harness.database.pool.query(
      `update events set person_id =
         ('00000000-0000-4000-8000-' || lpad(((properties->>'n')::int % 5)::text, 12, '0'))::uuid`,
    );
    const exported = await harness.exportHours({
      query: `select uuid, _inserted_at, event from events where person.properties.plan = 'pro'`,
    });
    // Of five persons, the one without a row and two of four are not selected.
    const rows = (eventsPerHour * hours.length * 2) / 5;
    for (const options of [{}, { fast: true }])
      expect(await exported.verify(options)).toMatchObject({ findings: [], ok: true, totals: { rows } });
  });
});
