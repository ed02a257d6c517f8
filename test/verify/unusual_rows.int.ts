import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createVerifyHarness, hours, teamId, type VerifyHarness } from './verify_harness.ts';

const formats = [
  { file_format: 'JSONLines', compression: null },
  { file_format: 'CSV', compression: 'gzip' },
  { file_format: 'Parquet', compression: 'zstd' },
];

describe('rows that files contain otherwise than PostgreSQL prints them', () => {
  const times = [
    '0001-01-01 00:00:00Z BC',
    '0044-03-15 12:30:00.5Z BC',
    '4714-11-24 00:00:00Z BC',
    '10000-01-01 00:00:00Z',
    '294246-12-31 23:59:59.999999Z',
    '294247-02-01Z',
    'infinity',
    '-infinity',
  ];
  const [{ start }] = hours as [(typeof hours)[0]];
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(20);
    const { pool } = harness.database;
    await pool.query('alter table events alter column properties type json using properties::json');
    const documents = [
      '  {"a": 1}  ',
      '\t[1, " 2 "]\n',
      '\r\n " text " ',
      ' null ',
      ` {"long": "${'x'.repeat(100)}"} `,
    ];
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), 'event', 'd', document::json, moment::timestamptz,
         $2::timestamptz + make_interval(secs => row_number() over ())
       from unnest($3::text[]) document, unnest($4::text[]) moment`,
      [teamId, start, documents, ['2026-01-01T10:00:00Z', ...times]],
    );
  });
  afterAll(() => harness.close());

  it.each(formats)('are found equal in $file_format', async (format) => {
    const exported = await harness.exportHours({ config: { ...format, on_bad_row: 'reject' } });
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
    const { rejected, rows } = await exported.manifest(0);
    expect(rows + rejected).toBe(20 + 5 * 9);
    expect(rejected).toBe(5 * times.length);
  });

  it('are found equal in Parquet as columns of a query', async () => {
    const exported = await harness.exportHours({
      config: { file_format: 'Parquet', compression: 'zstd', on_bad_row: 'reject' },
      query: 'select uuid, _inserted_at, toDate(timestamp) as day, timestamp, properties from events',
    });
    const report = await exported.verify({ deep: true });
    expect(report).toMatchObject({ ok: true, findings: [] });
  });

  it('are found changed', async () => {
    const exported = await harness.exportHours({ config: { ...formats[0], on_bad_row: 'reject' } });
    await exported.rewrite(0, (lines) => lines.map((line) => line.replace('" 2 "', '"2"')));
    const { findings } = await exported.verify({ deep: true });
    expect(findings.filter(({ kind }) => kind === 'mismatched')).toMatchObject([
      { count: 1, rows: [{ column: 'properties' }] },
    ]);
  });
});

describe('rows with one key', () => {
  const equalRows = 5_000;
  let harness: VerifyHarness;
  beforeAll(async () => {
    harness = await createVerifyHarness(50);
    // 20 MB together, much more than a page or a block.
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, '0193aaaa-0000-7000-8000-000000000000', 'event ' || n, 'd', jsonb_build_object('noise', noise), moment, moment
       from generate_series(1, $2::int) n
       cross join lateral (select string_agg(md5(n || ' ' || g), '') as noise from generate_series(1, 120) g) r
       cross join lateral (select $3::timestamptz + interval '30 minutes' as moment) m`,
      [teamId, equalRows, hours[0]?.start],
    );
  });
  afterAll(() => harness.close());

  it.each(formats)(
    'are exported once in $file_format, also if they are larger than a page',
    async (config) => {
      const exported = await harness.exportHours({ config });
      expect(await exported.manifest(0)).toMatchObject({ rows: equalRows + 50, source_rows: equalRows + 50 });
      expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
    },
  );
});
