import { randomUUID } from 'node:crypto';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import type { ReplacementCheck } from '../../src/domain/replacement_check.ts';
import type { ExistingRun } from '../../src/domain/run_state.ts';
import { countRows } from '../../src/export/count.ts';
import { toApplicationFailure } from '../../src/failures/classify_error.ts';
import { quickPolicies } from '../decisions/commander.ts';
import type { ExportHarness } from './export_harness.ts';

type RunOptions = NonNullable<Parameters<ExportHarness['createRun']>[0]>;
type AttemptOptions = NonNullable<Parameters<ExportHarness['attempt']>[0]>;

/** Returns hours that no other test uses, each before the one of the previous call. */
export function createHours(): () => { start: string; end: string } {
  let next = Date.parse('2026-02-01T00:00:00.000Z');
  return () => {
    next -= 3_600_000;
    return { start: new Date(next).toISOString(), end: new Date(next + 3_600_000).toISOString() };
  };
}

/**
 * Small events of one hour, and whole runs of it: counted, checked, exported and published like the workflow does.
 * @param of the export, and how many rows a range has; by default a new export without ranges
 */
export function createReruns(
  harness: ExportHarness,
  hour: { start: string; end: string },
  of: {
    readonly batchExportId?: string;
    readonly rangeRows?: number;
  } = {},
) {
  const { database, recorder, source, readSelection, journal } = harness;
  const { batchExportId = randomUUID(), rangeRows = harness.settings.EXPORTD_RANGE_ROWS } = of;
  const settings = {
    ...harness.settings,
    EXPORTD_RANGE_ROWS: rangeRows,
  };
  /** Events `from` to `to`, one per second, named `event 1`, … in that order. */
  const insert = async (from: number, to: number): Promise<void> => {
    await database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select 1, gen_random_uuid(), 'event ' || n, 'person', '{}', moment, moment
       from generate_series($2::int, $3::int) n
       cross join lateral (select $1::timestamptz + make_interval(secs => n) as moment) m`,
      [hour.start, from, to],
    );
  };
  /** Persons that changed at the start of the hour, each with one distinct id. */
  const insertPersons = async (count: number): Promise<void> => {
    await database.pool.query(
      `with person as (insert into persons (team_id, id, properties, created_at, updated_at)
         select 1, gen_random_uuid(), '{}', $1, $1 from generate_series(1, $2::int) returning id)
       insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at) select 1, id::text, id, $1 from person`,
      [hour.start, count],
    );
  };
  const remove = async (from: number, to: number): Promise<void> => {
    const { rowCount } = await database.pool.query(
      `delete from events where inserted_at >= $1::timestamptz + make_interval(secs => $2::int)
       and inserted_at <= $1::timestamptz + make_interval(secs => $3::int)`,
      [hour.start, from, to],
    );
    if (rowCount === 0) throw new Error('No event was deleted.');
  };
  const create = (options: RunOptions = {}) => harness.createRun({ batchExportId, of: hour, ...options });
  const count = (run_id: string) =>
    countRows(
      { recorder, source, readSelection, settings },
      { run_id, settled: true, blocked_by: [] },
      new AbortController().signal,
    );
  const exportRows = async (
    attempt: ReturnType<ExportHarness['attempt']>,
    run_id: string,
    ranges: number,
  ): Promise<void> => {
    if (ranges === 1) {
      await attempt.exportInterval({ run_id });
      return;
    }
    do {
      for (let range = 0; range < ranges; range += 1) await attempt.exportRange({ run_id, range });
    } while (!(await attempt.finishExport({ run_id })).finished);
  };
  /** Runs the steps from `check` on, and ends the run after an error. */
  const proceed = async (
    run_id: string,
    options: AttemptOptions & { readonly beforeExport?: () => Promise<void> } = {},
  ): Promise<{ readonly latest_error: string | null; readonly manifest_key: string | null }> => {
    const { beforeExport, ...attemptOptions } = options;
    const attempt = harness.attempt(attemptOptions);
    try {
      const { rows, ranges, check_replacement } = await count(run_id);
      if (check_replacement) await attempt.checkReplacement({ run_id });
      await beforeExport?.();
      if (rows > 0) await exportRows(attempt, run_id, ranges);
      const { manifest_key } = await attempt.publishManifest({ run_id });
      return { latest_error: null, manifest_key };
    } catch (error) {
      const { type, message, nonRetryable } = toApplicationFailure(error);
      const latest_error = `${type}: ${message}`;
      const status = nonRetryable === true ? 'Failed' : 'FailedRetryable';
      await endRun(journal, quickPolicies(), run_id, { status, latest_error });
      return { latest_error, manifest_key: null };
    }
  };
  /** Creates a run and runs all of its steps. */
  const run = async (
    options: RunOptions = {},
    attemptOptions: Parameters<typeof proceed>[1] = {},
  ): Promise<{
    readonly run_id: string;
    readonly latest_error: string | null;
    readonly manifest_key: string | null;
    readonly state: ExistingRun;
    readonly check: ReplacementCheck | null;
  }> => {
    const { run_id } = await create(options);
    const ended = await proceed(run_id, attemptOptions);
    const state = await recorder.read(run_id);
    return { run_id, ...ended, state, check: state.replacement };
  };
  return { batchExportId, insert, insertPersons, remove, create, count, proceed, run };
}
