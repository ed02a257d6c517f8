import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { parseManifest } from '../../src/destination/manifest.ts';
import { batchExportDecider } from '../../src/domain/batch_export.ts';
import { readStandings } from '../../src/projections/export_conditions.ts';
import { exportd } from '../cli/command_line.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { disagreements } from '../domain/coverage_sentence.ts';
import { definitionOf } from '../domain/definition.ts';
import { randomCases } from '../setup/effort.ts';
import { createVerifyHarness, teamId, type VerifyHarness } from './verify_harness.ts';

const hoursOfDay = [10, 11, 12, 13, 14, 15];
const at = (hour: number): string => `2026-01-03T${hour}:00:00.000Z`;
const [first, createdAt, last] = [10, 12, 16];

let harness: VerifyHarness;
beforeAll(async () => {
  harness = await createVerifyHarness(1);
});
afterAll(() => harness.close());

const insert = (hour: number, rows: number): Promise<unknown> =>
  harness.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), 'event', 'person', '{}', moment, moment from generate_series(1, $3::int) n
     cross join lateral (select $2::timestamptz + random() * interval '59 minutes' as moment) m`,
    [teamId, at(hour), rows],
  );

const removeOne = (hour: number): Promise<unknown> =>
  harness.database.pool.query(
    `delete from events where uuid = (select uuid from events where inserted_at >= $1 and inserted_at < $2 limit 1)`,
    [at(hour), at(hour + 1)],
  );

/** Creates an export whose schedule begins at noon, of hours that begin at ten. */
async function createExport(): Promise<string> {
  const id = randomUUID();
  const definition = definitionOf({ name: 'A life', end_at: at(last) });
  await harness.journal.transaction(async (transaction) => {
    const stream = await transaction.lock(batchExportDecider, id);
    const data = { team_id: teamId, definition, scheduled_until: at(createdAt), paused: false };
    await stream.append('created', [{ type: 'BatchExportCreated', data }]);
  });
  return id;
}

/** Exports an hour as the schedule or a backfill does. A run that would remove rows fails: it is held. */
async function exportHour(batchExportId: string, hour: number): Promise<void> {
  const { run_id } = await harness.createRun({ batchExportId, of: { start: at(hour), end: at(hour + 1) } });
  const attempt = harness.attempt();
  try {
    await attempt.exportInterval({ run_id });
    await attempt.publishManifest({ run_id });
  } catch (error) {
    await endRun(harness.journal, quickPolicies(), run_id, {
      status: 'Failed',
      latest_error: error instanceof Error ? error.message : 'Unknown.',
    });
  }
}

async function failHour(batchExportId: string, hour: number): Promise<void> {
  const { run_id } = await harness.createRun({ batchExportId, of: { start: at(hour), end: at(hour + 1) } });
  await endRun(harness.journal, quickPolicies(), run_id, {
    status: 'Failed',
    latest_error: 'Test: it fails.',
  });
}

/** Does what a lifecycle rule of the bucket does with the objects of an hour, and records that its server had told when. */
async function expireHour(batchExportId: string, hour: number): Promise<boolean> {
  const { pool } = harness.database;
  const manifest = (await harness.keysBelow(`${batchExportId}/_manifests/`)).find((key) =>
    key.includes(`T${hour}0000Z-`),
  );
  if (manifest === undefined) return false;
  await harness.deleteObject(manifest);
  const connection = await pool.connect();
  try {
    // Nothing but a server's reply says it, and events do not change.
    await connection.query("set session_replication_role = 'replica'");
    const { rows } = await connection.query<{ run_id: string }>(
      `update exportd.intervals set expires_at = statement_timestamp()
       where batch_export_id = $1 and data_interval_start = $2 returning manifest_run_id as run_id`,
      [batchExportId, at(hour)],
    );
    await connection.query(
      `update exportd.journal_events set data = data || jsonb_build_object('expires_at', now())
       where stream_type = 'run' and stream_id = $1 and event_type = 'RunCompleted'`,
      [rows[0]?.run_id],
    );
    await connection.query("set session_replication_role = 'origin'");
  } finally {
    connection.release();
  }
  return true;
}

/** What a reader finds that knows only bucket and source: ids of rows by hour. */
async function read(batchExportId: string) {
  const files = new Map<number, string[]>();
  for (const key of await harness.keysBelow(`${batchExportId}/`)) {
    if (!key.includes('/_manifests/')) continue;
    const manifest = parseManifest((await harness.getObject(key)).toString());
    if (!manifest) throw new Error(`${key} is no manifest.`);
    const texts = await Promise.all(manifest.files.map((file) => harness.getObject(file.key)));
    const ids = texts.flatMap((text) =>
      text
        .toString()
        .split('\n')
        .flatMap((line) => /"uuid":"([^"]*)"/.exec(line)?.[1] ?? []),
    );
    files.set(new Date(manifest.data_interval_start).getUTCHours(), ids.toSorted());
  }
  const { rows } = await harness.database.pool.query<{ hour: number; ids: string[] }>(
    `select extract(hour from inserted_at at time zone 'UTC')::int as hour, array_agg(uuid::text order by uuid::text) as ids
     from events where inserted_at >= $1 and inserted_at < $2 group by 1`,
    [at(first), at(last)],
  );
  return { files, source: new Map(rows.map(({ hour, ids }) => [hour, ids])) };
}

const middleOf = (hour: number): number => Date.parse(at(hour)) + 1_800_000;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const hour = fc.constantFrom(...hoursOfDay);
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('export' as const), hour }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom('late' as const, 'remove' as const, 'fail' as const, 'expire' as const),
      hour,
    }),
  },
);

describe('the coverage', () => {
  it('is what a reader of bucket and source finds, after each step of random lives', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 9 }), async (actions) => {
        await harness.database.pool.query('delete from events');
        for (const one of hoursOfDay) await insert(one, 3);
        const id = await createExport();
        /** Hours whose newest run has failed, exported ones too. A run that is held has another reason. */
        const failed = new Set<number>();
        const expired = new Set<number>();
        // Before noon the export owes only what a run was created for.
        const owes = (one: number): boolean => one >= createdAt || failed.has(one);
        for (const { kind, hour: of } of actions) {
          if (kind === 'export') {
            await exportHour(id, of);
            failed.delete(of);
          }
          if (kind === 'fail') {
            await failHour(id, of);
            failed.add(of);
          }
          if (kind === 'late') await insert(of, 2);
          if (kind === 'remove') await removeOne(of);
          if (kind === 'expire' && (await expireHour(id, of))) expired.add(of);
          const coverage = (await readStandings(harness.database.pool, [id], () => undefined)).get(
            id,
          )?.coverage;
          expect(coverage && disagreements(coverage, hoursOfDay.map(middleOf))).toEqual([]);
          const { files } = await read(id);
          for (const one of files.keys()) expired.delete(one);
          const found = hoursOfDay.map((one) =>
            coverage?.ranges.find(({ start, end }) => (start === null || start <= at(one)) && at(one) < end),
          );
          const stateOf = (one: number): string => {
            if (files.has(one)) return 'exported';
            return owes(one) && !expired.has(one) ? 'owed' : 'not_owed';
          };
          expect(found.map((range) => [range?.state, range?.reason === 'failed'])).toEqual(
            hoursOfDay.map((one) => [stateOf(one), failed.has(one) && !expired.has(one)]),
          );
        }
        const { files, source } = await read(id);
        const report = await harness.verify({ batchExportId: id, from: at(first), to: at(last) });
        const unexported = hoursOfDay.filter((one) => !files.has(one));
        const rowsOf = (one: number): readonly string[] => source.get(one) ?? [];
        expect(report.coverage?.span).toMatchObject({
          start: at(first),
          end: at(last),
          source_rows: sum(hoursOfDay.map((one) => rowsOf(one).length)),
        });
        expect(report.totals.rows).toBe(sum([...files.values()].map(({ length }) => length)));
        const parts = report.coverage?.span?.not_exported ?? [];
        expect(sum(parts.map(({ rows }) => rows))).toBe(sum(unexported.map((one) => rowsOf(one).length)));
        expect(
          parts.flatMap(({ start, end }) => hoursOfDay.filter((one) => start <= at(one) && at(one) < end)),
        ).toEqual(unexported);
        const isComplete =
          unexported.every((one) => expired.has(one) || (!owes(one) && rowsOf(one).length === 0)) &&
          [...files].every(([one, ids]) => JSON.stringify(ids) === JSON.stringify(rowsOf(one)));
        expect([report.ok, report.findings.length === 0]).toEqual([isComplete, isComplete]);
      }),
      { numRuns: randomCases(3) },
    );
  });

  it('of a time says that it is not complete, with rows and reason, though the export owes nothing of it', async () => {
    await harness.database.pool.query('delete from events');
    for (const one of hoursOfDay) await insert(one, 3);
    const id = await createExport();
    for (const one of hoursOfDay.filter((hourOfDay) => hourOfDay >= createdAt)) await exportHour(id, one);
    const environment = {
      DATABASE_URL: harness.database.url,
      EXPORTD_ENCRYPTION_KEYS: harness.encryptionKeys,
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
    };
    const verify = async (...options: readonly string[]): Promise<[code: number, lines: string[]]> => {
      const { code, stdout } = await exportd(environment, 'verify', id, ...options);
      return [code, stdout.trimEnd().split('\n')];
    };
    const whole = await verify();
    expect([whole[0], whole[1].at(-2)]).toEqual([
      0,
      'Exported 3 Jan 12:00 – 3 Jan 16:00 UTC. Not exported: anything before 3 Jan 12:00, before the export was created; since 3 Jan 16:00, after end_at.',
    ]);
    const [code, lines] = await verify('--from', at(first), '--to', at(last));
    expect([code, lines.slice(-3)]).toEqual([
      1,
      [
        `From 2026-01-03T10:00:00Z to 2026-01-03T16:00:00Z: 18 rows in the source, 12 rows in files.`,
        'Exported 3 Jan 12:00 – 3 Jan 16:00 UTC. Not exported: 3 Jan 10:00 – 3 Jan 12:00, 6 rows, before the export was created.',
        '4 manifests, 4 files, 12 rows: 1 finding.',
      ],
    ]);
    expect(lines.join('\n')).toContain('NOT_EXPORTED  2026-01-03T10:00:00Z to 2026-01-03T12:00:00Z');
    expect((await verify('--from', at(createdAt), '--to', at(last)))[0]).toBe(0);
  });
});
