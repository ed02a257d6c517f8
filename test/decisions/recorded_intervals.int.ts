import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { advanceBackfill } from '../../src/decisions/advance_backfill.ts';
import { findIntervalFrom, toRecordedRange } from '../../src/decisions/ledger_boundaries.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import type { DataInterval } from '../../src/domain/intervals.ts';
import { inTransaction } from '../../src/journal/database.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { randomCases } from '../setup/effort.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { createCommander, quickPolicies } from './commander.ts';
import { readRuns } from './read_runs.ts';

const database = useTestDatabase();
const journal = openJournal(database.pool);
const policies = quickPolicies({
  EXPORTD_MAX_BACKFILLS_PER_PROJECT: '1000',
  EXPORTD_PAUSE_AFTER_FAILURES: '0',
});

const query = async <Row extends object>(sql: string, ...values: unknown[]): Promise<Row[]> =>
  (await database.pool.query<Row>(sql, values)).rows;

const day = 24 * 60 * 60_000;
/** Local midnight of this zone, a number of days ago. */
const midnight = (daysAgo: number): string =>
  new Date(Math.floor(Date.now() / day) * day - daysAgo * day).toISOString();
const later = (time: string, hours: number): string =>
  new Date(Date.parse(time) + hours * 3_600_000).toISOString();

/** A daily export in UTC, which ended some days ago. */
async function createDaily(endedDaysAgo = 1) {
  const commander = createCommander(journal, policies);
  await commander.create({ interval: 'day', timezone: 'UTC', end_at: midnight(endedDaysAgo) });
  return commander;
}

/** The rules of the zone change as with a new version of Node.js: days start an hour earlier, also in the past. */
const changeRules = (batchExportId: string) =>
  query(
    `update exportd.stream_states set state = jsonb_set(state, '{revisions,0,timezone}', '"Etc/GMT-1"')
     where stream_id = $1`,
    batchExportId,
  );

/** Backfills a range until it has ended. Returns the new intervals. */
async function backfill(
  commander: ReturnType<typeof createCommander>,
  start_at: string,
  end_at: string,
): Promise<{ readonly total_runs: number; readonly intervals: DataInterval[] }> {
  const { command } = await commander.command('backfill', { start_at, end_at });
  const { backfill_id } = command.outcome as { backfill_id: string };
  for (let step = 0; step < 100; step += 1) {
    const { ended, total_runs } = await advanceBackfill(journal, policies, backfill_id);
    if (ended) return { total_runs, intervals: await intervalsOf(`backfill_id = '${backfill_id}'`) };
    for (const { id, status } of await readRuns(database.pool, { backfill_id }))
      if (status === 'Starting')
        await endRun(journal, policies, id, { status: 'Failed', latest_error: 'A reason.' });
  }
  throw new Error('The backfill does not end.');
}

const intervalsOf = (condition: string): Promise<DataInterval[]> =>
  query<DataInterval>(
    `select data_interval_start as start, data_interval_end as end from exportd.batch_export_runs
     where ${condition} order by data_interval_start`,
  );

const days = (...bounds: readonly string[]): DataInterval[] =>
  bounds.slice(1).map((end, index) => ({ start: bounds[index] ?? '', end }));

describe('an interval of the ledger', () => {
  it('keeps its bounds in a backfill after the rules of its zone have changed', async () => {
    const commander = await createDaily();
    await backfill(commander, midnight(5), midnight(3));
    await changeRules(commander.batchExportId);
    const again = await backfill(commander, midnight(5), midnight(3));
    expect(again).toEqual({ total_runs: 2, intervals: days(midnight(5), midnight(4), midnight(3)) });
    // Days without a run are cut by the new rules, up to those that have one.
    const around = await backfill(commander, midnight(6), midnight(2));
    expect(around).toEqual({
      total_runs: 6,
      intervals: days(
        later(midnight(6), -1),
        later(midnight(5), -1),
        midnight(5),
        midnight(4),
        midnight(3),
        later(midnight(2), -1),
        later(midnight(1), -1),
      ),
    });
  });

  it('keeps its bounds if it is the only one of a backfill', async () => {
    const commander = await createDaily();
    await backfill(commander, midnight(5), midnight(4));
    await changeRules(commander.batchExportId);
    const again = await backfill(commander, midnight(5), later(midnight(5), 1));
    expect(again).toEqual({ total_runs: 1, intervals: days(midnight(5), midnight(4)) });
  });

  it('is not scheduled again by other bounds when a backfill was ahead of the schedule', async () => {
    const { batchExportId, ...commander } = createCommander(journal, policies);
    await commander.create({ interval: 'day', timezone: 'UTC', end_at: null });
    await query(
      `update exportd.stream_states set state = jsonb_set(state, '{scheduled_until}', to_jsonb($2::text)) where stream_id = $1`,
      batchExportId,
      midnight(3),
    );
    await query(
      `insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, run_id)
       values ($1, $2, $3, 'exported', $4)`,
      batchExportId,
      midnight(2),
      midnight(1),
      randomUUID(),
    );
    await changeRules(batchExportId);
    await commander.step();
    const scheduled = await intervalsOf(`batch_export_id = '${batchExportId}'`);
    expect(scheduled.slice(0, 3)).toEqual(
      days(midnight(3), later(midnight(2), -1), midnight(2), midnight(1)).slice(0, 3),
    );
  });
});

describe('the intervals of a range', () => {
  it('tile it with those of the ledger, whatever these are', async () => {
    const hourOf = (hour: number): string => new Date(Date.UTC(2026, 0, 1, hour)).toISOString();
    const revisions = [
      { interval: 'day', timezone: 'UTC', offset_hour: 0, offset_day: 0, effective_from: null },
    ] as const;
    await fc.assert(
      fc.asyncProperty(
        fc
          .uniqueArray(fc.nat({ max: 240 }), { maxLength: 14 })
          .map((hours) => hours.toSorted((a, b) => a - b)),
        fc.array(fc.boolean(), { minLength: 14, maxLength: 14 }),
        fc.nat({ max: 200 }),
        fc.integer({ min: 1, max: 90 }),
        async (hours, isRecorded, first, length) => {
          const batchExportId = randomUUID();
          const recorded = days(...hours.map(hourOf)).filter((_, index) => isRecorded[index]);
          for (const { start, end } of recorded)
            await query(
              `insert into exportd.intervals (batch_export_id, data_interval_start, data_interval_end, status, run_id)
               values ($1, $2, $3, 'exported', gen_random_uuid())`,
              batchExportId,
              start,
              end,
            );
          const source = { batchExportId, revisions };
          const asked = { start_at: hourOf(first), end_at: hourOf(first + length) };
          const computed = {
            start: hourOf(Math.floor(first / 24) * 24),
            end: hourOf(Math.ceil((first + length) / 24) * 24),
            intervals: 0,
          };
          const range = await toRecordedRange(database.pool, source, { ...asked, ...computed });
          expect(range.start <= asked.start_at && range.end >= asked.end_at).toBe(true);
          const found: DataInterval[] = [];
          for (let at = range.start; at < range.end; at = found.at(-1)?.end ?? '')
            found.push(
              await inTransaction(database.pool, (connection) => findIntervalFrom(connection, source, at)),
            );
          expect(found).toHaveLength(range.intervals);
          expect([found[0]?.start, found.at(-1)?.end]).toEqual([range.start, range.end]);
          for (const [index, { start }] of found.slice(1).entries()) expect(start).toBe(found[index]?.end);
          const within = recorded.filter(({ start, end }) => start < range.end && end > range.start);
          expect(found).toEqual(expect.arrayContaining(within));
        },
      ),
      { numRuns: randomCases(40) },
    );
  });
});
