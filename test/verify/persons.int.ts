import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createJobActivities } from '../../activities/jobs.ts';
import { findJob, listJobs, requestJob } from '../../src/jobs/jobs.ts';
import { createJobSlots } from '../../src/temporal/worker/activity_slots.ts';
import { relationsOf } from '../../src/source/relations.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { connectToSource } from '../../src/source/source_connection.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import type { ComparedRow } from '../../src/readers/row.ts';
import { createSourceRows } from '../../src/verify/source_rows.ts';
import { createVerificationHandler, verificationJob } from '../../src/verify/verification_job.ts';
import { createVerifyHarness, type Exported, hours, teamId, type VerifyHarness } from './verify_harness.ts';

describe('a bucket with persons', () => {
  const personCount = 90;
  let harness: VerifyHarness;
  let exported: Exported;
  beforeAll(async () => {
    harness = await createVerifyHarness(0);
    // Each person has two distinct ids: one mapped with the person, the other an hour later. Persons with a number
    // above the last have no row.
    await harness.database.pool.query(
      `insert into persons (team_id, id, properties, created_at, updated_at, version)
     select $1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, jsonb_build_object('n', n),
       '2025-12-31Z', timestamptz '2026-01-01 10:00Z' + n * interval '1 minute', 9007199254740993
     from generate_series(1, $2 - 1) n`,
      [teamId, personCount],
    );
    await harness.database.pool.query(
      `insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select $1, kind || n, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, n,
       timestamptz '2026-01-01 10:00Z' + n * interval '1 minute' + lag
     from generate_series(1, $2) n, (values ('now', interval '0'), ('later', interval '1 hour')) as kinds (kind, lag)`,
      [teamId, personCount],
    );
  });
  afterAll(() => harness.close());

  const kindsOf = ({ findings }: VerificationReport): FindingKind[] =>
    findings.map(({ kind }) => kind).sort();
  const idOf = (line: string): string => (JSON.parse(line) as { distinct_id: string }).distinct_id;
  const findingOf = ({ findings }: VerificationReport, kind: FindingKind) =>
    findings.find((one) => one.kind === kind);

  /** The line of a distinct id with changed fields. */
  const withChanges = (line: string, fields: object): string =>
    JSON.stringify({ ...(JSON.parse(line) as object), ...fields });

  it('has no findings when each newest state is in its interval', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    const report = await exported.verify({ deep: true });
    expect(report).toMatchObject({ ok: true, findings: [], totals: { rows: 2 * personCount } });
    expect(report.intervals.map(({ rows }) => rows)).toEqual([59, 90, 31]);
  });

  it('has no findings when older states were replaced in the source', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    await harness.database.pool.query(
      `update persons set updated_at = '2026-01-01 13:30Z' where properties ->> 'n' = '7'`,
    );
    expect(await exported.verify({ deep: true })).toMatchObject({ ok: true, findings: [] });
  });

  it('reports missing newest states', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    const lost: string[] = [];
    await exported.rewrite(1, (lines) => {
      lost.push(...lines.slice(3, 5).map(idOf));
      return [...lines.slice(0, 3), ...lines.slice(5)];
    });
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['missing']);
    expect(findingOf(report, 'missing')).toMatchObject({ ...hours[1], rows: lost.map((id) => ({ id })) });
  });

  it('has the newest states in its files or in those of earlier generations', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    await harness.database.pool.query(
      `update persons set updated_at = '2026-01-01 13:30Z' where properties ->> 'n' = '8'`,
    );
    await exported.exportAgain(1);
    const { earlier } = await exported.manifest(1);
    expect(earlier).toMatchObject([{ generation: 1, rows: 89 }]);
    await exported.rewrite(1, (lines) => lines.slice(1));
    const report = await exported.verify();
    expect(report).toMatchObject({ ok: true, totals: { missing: 0 } });
    expect(report.intervals.map(({ earlier_files }) => earlier_files)).toEqual([0, 1, 0]);

    const [key = ''] = earlier.map((file) => file.key);
    const bytes = await harness.getObject(key);
    await harness.putObject(key, bytes.subarray(0, bytes.indexOf('\n') + 1));
    expect(kindsOf(await exported.verify())).toEqual(['file_changed', 'missing']);
    await harness.deleteObject(key);
    expect(kindsOf(await exported.verify())).toEqual(['file_missing', 'missing']);
  });

  it('reports states that appeared late in the source', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    const change = (time: string) =>
      harness.database.pool.query(
        `update person_distinct_ids set updated_at = $1 where distinct_id = 'now1'`,
        [time],
      );
    await change('2026-01-01 11:59:59.999999Z');
    const report = await exported.verify();
    expect(kindsOf(report)).toEqual(['missing']);
    expect(findingOf(report, 'missing')).toMatchObject({ ...hours[1], rows: [{ id: 'now1' }] });
    await change('2026-01-01 10:01Z');
  });

  it('reports a distinct id twice in a manifest, in two manifests, or unknown', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    let moved = '';
    await exported.rewrite(0, (lines) => {
      const [first = ''] = lines;
      moved = lines.at(-1) ?? '';
      const earlier = withChanges(first, { _inserted_at: '2026-01-01T10:00:00.000000Z' });
      return [earlier, ...lines];
    });
    await exported.rewrite(2, (lines) => [
      moved,
      withChanges(lines[0] ?? '', { distinct_id: 'invented' }),
      ...lines,
    ]);
    const report = await exported.verify();
    expect(new Set(kindsOf(report))).toEqual(
      new Set(['duplicate', 'file_fingerprint', 'file_order', 'unexpected']),
    );
    const doubled = report.findings.filter(({ kind }) => kind === 'duplicate');
    expect(doubled).toMatchObject([hours[0] ?? {}, hours[2] ?? {}]);
    expect(doubled.map(({ rows }) => rows)).toEqual([[{ id: 'now1' }], [{ id: idOf(moved) }]]);
    expect(findingOf(report, 'unexpected')?.rows).toEqual([{ id: 'invented' }]);
  });

  it('reports values that differ from the source in any digit', async () => {
    exported = await harness.exportHours({ model: 'persons' });
    let id = '';
    await exported.rewrite(0, (lines) =>
      lines.map((line, index) => {
        if (index !== 5) return line;
        id = idOf(line);
        return line.replace('9007199254740993', '9007199254740992');
      }),
    );
    const report = await exported.verify({ deep: true });
    expect(findingOf(report, 'mismatched')?.rows).toEqual([{ id, column: 'person_version' }]);
    expect(kindsOf(report)).toEqual(['mismatched']);
  });

  it('adds a hint when the row of a person was deleted', async () => {
    // The mapping is older than the person, so its state then belongs to an interval that never contained it.
    await harness.database.pool.query(
      `update persons set updated_at = '2026-01-01 12:30Z' where properties ->> 'n' = '20'`,
    );
    exported = await harness.exportHours({ model: 'persons' });
    expect(await exported.verify()).toMatchObject({ ok: true });
    await harness.database.pool.query(`delete from persons where properties ->> 'n' = '20'`);
    const report = await exported.verify();
    expect(findingOf(report, 'missing')).toMatchObject({
      detail: expect.stringContaining('deleted from the source'),
    });
  });
});

describe('values', () => {
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
      const read = async (rows: number): Promise<ComparedRow[]> => {
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
        const found: ComparedRow[] = [];
        for await (const row of source.rows(range, shape)) found.push(row);
        return found;
      };
      const whole = await read(1_000);
      expect(whole.length).toBeGreaterThanOrEqual(60);
      for (const rows of [1, 7]) expect(await read(rows)).toEqual(whole);
      await connections.close();
    });
  });
});

describe('a verification', () => {
  let harness: VerifyHarness;
  let exported: Exported;
  let verifyInterval: (id: string) => Promise<void>;

  beforeAll(async () => {
    harness = await createVerifyHarness(20);
    exported = await harness.exportHours();
    const { keyRing, database } = harness;
    const { pool } = database;
    const settings = { ...harness.settings, SOURCE_DATABASE_URL: database.url };
    const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
    const activities = createJobActivities({
      pool,
      handlers: [createVerificationHandler({ pool, keyRing, settings, logger, targets: [] })],
      slots: createJobSlots(),
      settings,
      logger,
      context: () => ({ heartbeat: () => undefined, cancellationSignal: new AbortController().signal }),
    });
    verifyInterval = (job_id) => activities.doJob({ job_id });
  });
  afterAll(() => harness.close());

  const hourOf = (index: number) => hours[index] ?? { start: '', end: '' };

  const request = (hour: number, more: { target?: string; team_id?: number } = {}) =>
    requestJob({ pool: harness.database.pool, settings: harness.settings }, verificationJob, {
      target: exported.batchExportId,
      team_id: teamId,
      user_id: 1,
      parameters: { ...hourOf(hour), deep: true },
      ...more,
    });
  const find = (id: string) => findJob(harness.database.pool, verificationJob, id);

  /** Requests a verification, runs it, and returns it. */
  async function verified(hour: number, more: { target?: string } = {}) {
    const id = (await request(hour, more)) ?? '';
    expect((await find(id))?.status).toBe('pending');
    await verifyInterval(id);
    return find(id);
  }

  it('compares the files of one interval with the source', async () => {
    expect(await verified(0)).toMatchObject({
      parameters: hourOf(0),
      status: 'completed',
      error: null,
      result: { ok: true, deep: true, findings: [], totals: { manifests: 1, files: 1, rows: 20 } },
    });
  });

  it('names the rows that are missing', async () => {
    await exported.rewrite(1, (lines) => lines.slice(1));
    const found = await verified(1);
    expect(found).toMatchObject({ status: 'completed', result: { ok: false, totals: { missing: 1 } } });
    const listed = await listJobs(harness.database.pool, verificationJob, {
      target: exported.batchExportId,
      parameters: hourOf(1),
    });
    expect(listed).toEqual([found]);
  });

  it('fails with a message, and not its activity', async () => {
    expect(await verified(0, { target: randomUUID() })).toMatchObject({
      status: 'failed',
      result: null,
      error: expect.stringContaining('does not exist'),
    });
  });

  it('runs once', async () => {
    const id = (await request(0)) ?? '';
    await verifyInterval(id);
    const first = await find(id);
    await verifyInterval(id);
    expect(await find(id)).toEqual(first);
  });

  it('is requested once by concurrent requests', async () => {
    const requests = await Promise.all(Array.from({ length: 8 }, () => request(0)));
    const ids = requests.filter((id) => id !== null);
    expect(ids).toHaveLength(1);
    await verifyInterval(ids[0] ?? '');
  });

  it('is not requested while one of the project is unfinished, and whatever those of others are', async () => {
    const ids = [];
    for (let team_id = 1; team_id <= 20; team_id += 1) ids.push(await request(2, { team_id }));
    expect(ids).not.toContain(null);
    expect(await request(2)).toBeNull();
    for (const id of ids) await verifyInterval(id ?? '');
    expect(await request(2)).not.toBeNull();
  });
});
