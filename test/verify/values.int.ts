import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { relationsOf } from '../../src/source/relations.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { connectToSource } from '../../src/source/source_connection.ts';
import type { VerifiedRow } from '../../src/verify/row.ts';
import { createSourceRows } from '../../src/verify/source_rows.ts';
import { createVerifyHarness, hours, teamId, type VerifyHarness } from './verify_harness.ts';

const nested = (depth: number): string => `${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`;

/** Properties that are easily corrupted, as a `json` column keeps them. */
const edgeCaseProperties = [
  '{}',
  'null',
  '"text"',
  '{"big": 9007199254740993, "bigger": 123456789012345678901234567890.12345678901234567890, "tiny": 1e-400, "huge": 1e400}',
  '{"zero": -0, "zeros": 1.0000, "same": 1, "same": 2}',
  '{"__proto__": {"a": 1}, "constructor": null, "": ""}',
  '{"line": "a\\u2028b\\nc", "nul": "\\u0000", "lone": "\\ud800", "quote": "\\"}{][,:\\\\"}',
  '{\n  "laid": [\r\n    1,\t2\n  ]\n}',
  nested(1_000),
  JSON.stringify({ text: 'ä€😀'.repeat(20_000) }),
];
const edgeCaseTexts = [
  '',
  ' ',
  'null',
  'a,"b"\n\r\tc',
  '\u2028\u0001\u007f',
  '😀'.repeat(50),
  '\\',
  '""',
  'sha256:',
];
const edgeCaseTimes = [
  '0001-01-01 00:00:00Z',
  '9999-12-31 23:59:59.999999Z',
  '1969-12-31 23:59:59.999999Z',
  '2026-02-28 23:59:59.5+05:45',
];

let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(0);
  const { pool } = harness.database;
  await pool.query(
    `drop index events_team_session; -- PostgreSQL cannot index all values of the type json.
     alter table events alter properties drop default, alter properties type json using properties::json`,
  );
  const count = Math.max(edgeCaseProperties.length, edgeCaseTexts.length, edgeCaseTimes.length);
  for (let index = 0; index < count; index += 1)
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, elements_chain, timestamp, created_at, inserted_at)
       select $1, gen_random_uuid(), $2, $2, case when n = 1 then gen_random_uuid() end, $3,
         case when n = 1 then '{"b": [1.50, null], "a": 12345678901234567890}'::jsonb end, $2, $4, $4,
         timestamptz '2026-01-01 10:30Z' + $5 * interval '1 microsecond'
       from generate_series(1, 2) n`,
      [
        teamId,
        edgeCaseTexts[index % edgeCaseTexts.length],
        edgeCaseProperties[index % edgeCaseProperties.length],
        edgeCaseTimes[index % edgeCaseTimes.length],
        index,
      ],
    );
});
afterAll(() => harness.close());

describe('edge case values', () => {
  it('are equal in JSON lines and in the source', async () => {
    const exported = await harness.exportHours();
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });

  it('are reported when they differ slightly', async () => {
    const exported = await harness.exportHours();
    const changes: [string, string, string][] = [
      ['9007199254740993', '9007199254740992', 'properties'],
      ['"zero": -0', '"zero": 0', 'properties'],
      ['"same": 1,', '', 'properties'],
      ['\\u0000', '', 'properties'],
      ['1.0000', '1.0', 'properties'],
      ['"a": 12345678901234567890,', '"a": 12345678901234567891,', 'person_properties'],
      ['23:59:59.999999Z', '23:59:59.999998Z', 'timestamp'],
      ['"elements_chain":""', '"elements_chain":null', 'elements_chain'],
    ];
    let done = 0;
    await exported.rewrite(0, (lines) => {
      const left = [...lines];
      for (const [from, to] of changes) {
        const at = left.findIndex((line) => line.includes(from));
        left[at] = left[at]?.replace(from, to) ?? '';
        done += at >= 0 ? 1 : 0;
      }
      return left;
    });
    expect(done).toBe(changes.length);
    const report = await exported.verify({ deep: true });
    expect(report.findings.map(({ kind }) => kind)).toEqual(['mismatched']);
    expect(new Set(report.findings[0]?.rows.map(({ column }) => column))).toEqual(
      new Set(changes.map(([, , column]) => column)),
    );
  });

  it('are not compared when they are joined from persons while reading', async () => {
    const { pool } = harness.database;
    await pool.query('alter table events rename column person_properties to hidden');
    const exported = await harness.exportHours();
    await exported.rewrite(0, (lines) =>
      lines.map((line) => line.replace('"person_properties":null', '"person_properties":{}')),
    );
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true });
    await pool.query('alter table events rename column hidden to person_properties');
  });
});

describe('pages of the source', () => {
  it.each(['events', 'persons'] as const)('of any size contain the same rows (%s)', async (model) => {
    const { pool, url } = harness.database;
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), '', '', '{}', now(), timestamptz '2026-01-01 11:00Z' + n / 3 * interval '1 minute'
       from generate_series(0, 60) n`,
      [teamId],
    );
    await pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       select $1, chr(n + 64), gen_random_uuid(), timestamptz '2026-01-01 11:00Z' + n / 3 * interval '1 minute'
       from generate_series(1, 60) n on conflict do nothing`,
      [teamId],
    );
    const connections = connectToSource({
      sourceUrl: url,
      applicationName: 'exportd',
      maxConnections: 1,
      statementTimeoutMs: 60_000,
    });
    const read = async (rows: number): Promise<VerifiedRow[]> => {
      const limits = { deep: rows, shallow: rows };
      const source = createSourceRows(
        connections,
        relationsOf(harness.settings),
        new AbortController().signal,
        limits,
      );
      const range = {
        model,
        team_id: teamId,
        interval: hours[1] ?? { start: '', end: '' },
        selection: allRows,
      };
      const shape = { id: 'id', columns: [{ name: 'distinct_id', type: 'text' }] };
      const found: VerifiedRow[] = [];
      for await (const row of source.rows(range, shape)) found.push(row);
      return found;
    };
    const whole = await read(1_000);
    expect(whole.length).toBeGreaterThanOrEqual(60);
    for (const rows of [1, 7]) expect(await read(rows)).toEqual(whole);
    await connections.close();
  });
});
