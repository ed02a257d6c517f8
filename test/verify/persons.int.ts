import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FindingKind, VerificationReport } from '../../src/verify/report.ts';
import { createVerifyHarness, hours, teamId, type Exported, type VerifyHarness } from './verify_harness.ts';

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

const kindsOf = ({ findings }: VerificationReport): FindingKind[] => findings.map(({ kind }) => kind).sort();
const idOf = (line: string): string => (JSON.parse(line) as { distinct_id: string }).distinct_id;
const findingOf = ({ findings }: VerificationReport, kind: FindingKind) =>
  findings.find((one) => one.kind === kind);

/** The line of a distinct id with changed fields. */
const withChanges = (line: string, fields: object): string =>
  JSON.stringify({ ...(JSON.parse(line) as object), ...fields });

describe('a bucket with persons', () => {
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
    expect(kindsOf(await exported.verify())).toEqual(['file_changed', 'file_rows']);
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
