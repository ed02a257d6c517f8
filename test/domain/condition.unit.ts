import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { anExport } from '../cli/api_objects.ts';
import { conditionLines, exportTable, needsAttention, statusRows } from '../../src/cli/export_tables.ts';
import { conditionLooks } from '../../src/console/components/statuses.ts';
import {
  compareConditions,
  conditionOf,
  explain,
  openCausesOf,
  suspectOf,
} from '../../src/domain/condition.ts';
import { coverageReasons, coverageStates } from '../../src/domain/coverage.ts';
import { conditionSchema } from '../../src/http/batch_exports/schema.ts';
import { testNotificationData } from '../../src/notifications/notification.ts';
import { messageBody } from '../../src/notifications/message_body.ts';
import { randomCases } from '../setup/effort.ts';
import type { AffectedIntervals, ConditionFacts } from '../../src/domain/condition_facts.ts';

const none = { intervals: 0, since: null, ranges: [], latest_error: null };
const now = '2026-11-01T12:00:00.000Z';
/** An hourly export that has exported everything. */
const fine: ConditionFacts = {
  id: 'the-export',
  team_id: 1,
  now,
  interval_ms: 3_600_000,
  is_readable: true,
  pause: null,
  is_scheduled: true,
  active_runs: 0,
  waiting: 0,
  missing: { intervals: 0, oldest_end: null },
  taken_slots: null,
  taken_turns: null,
  unstarted_since: null,
  worker_seen_at: now,
  workers_incident: null,
  temporal_fault: null,
  source_fault: null,
  operator_fault: null,
  circuit: null,
  failed: { ...none, ended_by_person: none },
  retrying: none,
  held: none,
  differing: none,
  unsettled: none,
  target_fault: null,
  coverage: {
    ranges: [
      { start: null, end: '2026-11-01T08:00:00.000Z', state: 'not_owed', reason: 'before creation' },
      {
        start: '2026-11-01T08:00:00.000Z',
        end: '2026-11-01T12:00:00.000Z',
        state: 'exported',
        reason: null,
      },
    ],
    is_complete: true,
    next_end: '2026-11-01T13:00:00.000Z',
    backfills: null,
    sentence: 'Exported 1 Nov 08:00 – 1 Nov 12:00 UTC.',
  },
  holes: none,
};
const some = (intervals: number, latest_error: string | null = null) => ({
  intervals,
  since: '2026-11-01T10:05:00.000Z',
  ranges: [{ start: '2026-11-01T09:00:00.000Z', end: '2026-11-01T10:00:00.000Z', run_id: 'the-run' }],
  latest_error,
});
const failed = (intervals: number, error: string, byPerson: AffectedIntervals = none) => ({
  ...some(intervals, error),
  ended_by_person: byPerson,
});
const at = '2026-11-01T11:00:00.000Z';
const fault = (message: string, type = 'SourceUnavailable') => ({
  type,
  message,
  opened_at: at,
  incident_id: 'the-incident',
});
const circuit = {
  error: 'Refused.',
  opened_at: at,
  bucket: 'clicks at s3.example.com',
  incident_id: 'the-incident',
};

describe('the condition of an export', () => {
  it.each<[cause: string, facts: Partial<ConditionFacts>, summary: RegExp]>([
    ['ok', {}, /^Exported 1 Nov 08:00 – 1 Nov 12:00 UTC\.$/],
    ['unreadable', { is_readable: false }, /cannot read the schedule/],
    [
      'no_worker',
      { worker_seen_at: '2026-11-01T11:58:00.000Z' },
      /^No worker of exportd has reported since 2026-11-01 11:58:00 UTC/,
    ],
    [
      'temporal_unavailable',
      { temporal_fault: fault('It is gone.'), waiting: 1, worker_seen_at: at },
      /^It is gone, since 2026-11-01 11:00:00 UTC\. 1 interval waits\.$/,
    ],
    [
      'source_unavailable',
      { source_fault: fault('The source is gone.'), waiting: 69 },
      /^The source is gone, since 2026-11-01 11:00:00 UTC\. 69 intervals wait\.$/,
    ],
    [
      'source_unavailable',
      {
        source_fault: fault('The database rejected the login.', 'InvalidAuthorization'),
        operator_fault: fault('The database rejected the login.', 'InvalidAuthorization'),
      },
      /^The source cannot be read: The database rejected the login, since .* UTC\. The next run will wait\.$/,
    ],
    [
      'operator_fault',
      { operator_fault: fault('Full.', 'DiskFull'), waiting: 1 },
      /^DiskFull: Full, since .*\. 1 interval waits\.$/,
    ],
    [
      'destination_unavailable',
      { circuit },
      /^The bucket clicks at s3\.example\.com does not respond since .* UTC: Refused\. The next run will wait\.$/,
    ],
    [
      'paused_by_failures',
      { pause: { at, by: null, failed_runs: 3 }, failed: failed(3, 'AccessDenied: No.') },
      /^exportd paused the export at .*, after 3 failed runs in a row: AccessDenied: No\.$/,
    ],
    [
      'access_denied',
      { failed: failed(2, 'SignatureDoesNotMatch: No.') },
      /^2 intervals failed .*: SignatureDoesNotMatch: No\.$/,
    ],
    [
      'failed',
      { failed: failed(1, 'NoSuchBucket: No.') },
      /^1 interval failed and is not retried automatically/,
    ],
    [
      'table_changed',
      {
        target_fault: { message: 'Version 3 is another.', found_at: at },
        failed: failed(1, 'TableOverwritten: No.'),
      },
      /^The table is not what exportd made it: Version 3 is another\.$/,
    ],
    ['held', { held: some(1), retrying: some(1) }, /^1 interval is held/],
    ['differs', { differing: some(2) }, /^The files of 2 intervals differ/],
    ['not_started', { unstarted_since: at, missing: { intervals: 1, oldest_end: at } }, /no run has started/],
    [
      'retrying',
      { retrying: some(1, 'InternalError: 500.') },
      /is retried automatically: InternalError: 500\.$/,
    ],
    [
      'behind_capacity',
      {
        active_runs: 3,
        missing: { intervals: 3, oldest_end: at },
        taken_slots: { slots: 8, workers: 2 },
      },
      /^Behind for lack of capacity: 3 intervals wait for a free slot, and all 8 of 2 workers are in use\. The oldest ended at 2026-11-01 11:00:00 UTC\. Start one more worker, or raise EXPORTD_EXPORT_SLOTS/,
    ],
    [
      'behind_capacity',
      { active_runs: 1, missing: { intervals: 1, oldest_end: at }, taken_turns: 2 },
      /^Behind for lack of capacity: 1 interval waits for its turn, and all 2 workers are busy\. The oldest ended at 2026-11-01 11:00:00 UTC\. Start one more worker\.$/,
    ],
    [
      'behind',
      { active_runs: 1, missing: { intervals: 3, oldest_end: at } },
      /^3 intervals are not exported yet/,
    ],
    [
      'holes',
      { holes: some(504) },
      /^504 intervals between the first and the last exported one were never exported/,
    ],
    ['unsettled', { unsettled: some(1) }, /may still add rows/],
    [
      'paused',
      { pause: { at, by: 'ada@example.com', failed_runs: null } },
      /^Paused at 2026-11-01 11:00:00 UTC by ada@example\.com\.$/,
    ],
  ])('is %s', (cause, facts, summary) => {
    const condition = conditionOf({ ...fine, ...facts });
    expect([condition.cause, condition.summary]).toEqual([cause, expect.stringMatching(summary)]);
  });

  it('has the same incident, in the same words, as that of every export of its outage', () => {
    const incident = {
      id: 'the-incident',
      subject: 'the bucket clicks at s3.example.com',
      summary: 'The bucket clicks at s3.example.com does not respond since 2026-11-01 11:00:00 UTC: Refused.',
    };
    for (const waiting of [0, 1, 9])
      expect(conditionOf({ ...fine, circuit, waiting }).incident).toEqual(incident);
    expect(conditionOf(fine).incident).toBeNull();
  });

  it('does not concern an outage that nothing of the export waits for', () => {
    const idle = { ...fine, is_scheduled: false, pause: { at, by: null, failed_runs: null } };
    const outage = {
      circuit,
      source_fault: fault('Gone.'),
      worker_seen_at: at,
    };
    expect(conditionOf({ ...idle, ...outage }).cause).toBe('paused');
    expect(conditionOf({ ...idle, ...outage, active_runs: 1 }).cause).toBe('no_worker');
  });

  it('is not late before a tenth of the interval and 15 minutes have passed', () => {
    const late = (minutes: number, interval_ms: number) =>
      conditionOf({
        ...fine,
        interval_ms,
        active_runs: 1,
        missing: { intervals: 1, oldest_end: new Date(Date.parse(now) - minutes * 60_000).toISOString() },
      }).cause;
    expect([late(21, 3_600_000), late(22, 3_600_000)]).toEqual(['ok', 'behind']);
    expect([late(158, 86_400_000), late(160, 86_400_000)]).toEqual(['ok', 'behind']);
  });

  it.each<[cause: string, facts: Partial<ConditionFacts>]>([
    ['ok', { interval_ms: 3_600_000 }],
    ['behind_capacity', {}],
    ['ok', { taken_slots: null }],
    ['behind_capacity', { taken_slots: null, taken_turns: 1 }],
    ['paused', { pause: { at, by: null, failed_runs: null } }],
    ['retrying', { retrying: some(1) }],
    ['held', { held: some(1) }],
    ['destination_unavailable', { circuit }],
    ['operator_fault', { operator_fault: fault('Full.', 'DiskFull') }],
  ])('is %s six minutes after an interval of five, with all slots taken and %j', (cause, facts) => {
    const missing = { intervals: 1, oldest_end: '2026-11-01T11:54:00.000Z' };
    const taken_slots = { slots: 4, workers: 1 };
    const saturated = { ...fine, interval_ms: 300_000, active_runs: 1, missing, taken_slots };
    expect(conditionOf({ ...saturated, ...facts }).cause).toBe(cause);
  });

  it('is notified once it is late, by the most telling of its causes', () => {
    const openCauses = (oldest_end: string) =>
      openCausesOf({
        ...fine,
        active_runs: 1,
        interval_ms: 300_000,
        missing: { intervals: 1, oldest_end },
        taken_slots: { slots: 4, workers: 1 },
      }).map(({ cause, summary }) => [cause, summary.slice(0, 27)]);
    expect(openCauses('2026-11-01T11:54:00.000Z')).toEqual([]);
    expect(openCauses(at)).toEqual([['behind', 'Behind for lack of capacity']]);
  });

  it('retries what a person has ended one by one, and all else at once', () => {
    const labels = (facts: Partial<ConditionFacts>) =>
      conditionOf({ ...fine, ...facts }).actions.map(({ label }) => label);
    expect(labels({ failed: failed(5, 'NoSuchBucket: No.') })).toEqual(['Retry all failed']);
    expect(labels({ failed: failed(1, 'Terminated: No.', some(1)) })).toEqual([
      'Retry 2026-11-01 09:00:00 UTC',
    ]);
    expect(labels({ failed: failed(5, 'NoSuchBucket: No.', some(1)) })).toEqual([
      'Retry all failed',
      'Retry 2026-11-01 09:00:00 UTC',
    ]);
    expect(labels({ pause: { at, by: null, failed_runs: 3 }, failed: failed(3, 'No: no.') })).toEqual([
      'Unpause and fill',
      'Retry all failed',
    ]);
  });
});

describe('the explanation of a condition', () => {
  const refused = conditionOf({ ...fine, circuit });
  const change = (minutesBefore: number) => ({
    at: new Date(Date.parse(at) - minutesBefore * 60_000).toISOString(),
    by: 'ann@example.com',
    key: 'deploy',
    fields: ['destination.config.endpoint_url', 'destination.config.region'],
  });

  it('names the newest change within an hour before, and who shares the bucket', () => {
    const suspect = suspectOf(refused, [change(50), change(5), change(-5), change(70)]);
    expect(suspect).toEqual(change(5));
    expect(explain(refused, suspect, 5)).toBe(
      'The bucket clicks at s3.example.com does not respond since 2026-11-01 11:00:00 UTC: Refused. The next run will wait. ' +
        'endpoint_url, region were changed at 2026-11-01 10:55:00 UTC by ann@example.com with the key "deploy". ' +
        '5 other exports share this bucket. The owner of the export has to act.',
    );
  });

  it('suspects no change of the export when the source is down, and explains nothing that is well', () => {
    const gone = conditionOf({ ...fine, source_fault: fault('Gone.') });
    expect(suspectOf(gone, [change(5)])).toBeUndefined();
    expect(suspectOf(refused, [change(70), change(-5)])).toBeUndefined();
    expect(explain(conditionOf(fine), undefined, 3)).toBe('Exported 1 Nov 08:00 – 1 Nov 12:00 UTC.');
  });
});

const time = fc
  .date({ min: new Date('2026-10-01'), max: new Date(now), noInvalidDate: true })
  .map((date) => date.toISOString());
const text = fc.string({ maxLength: 40 });
const affected = fc.record({
  intervals: fc.integer({ min: 0, max: 2 }),
  since: fc.option(time),
  ranges: fc.array(fc.record({ start: time, end: time, run_id: fc.option(fc.uuid()) }), { maxLength: 4 }),
  latest_error: fc.option(text),
});
const anyFault = fc.record({ type: text, message: text, opened_at: time, incident_id: fc.uuid() });
const anyFacts: fc.Arbitrary<ConditionFacts> = fc.record({
  id: fc.uuid(),
  team_id: fc.integer({ min: 1, max: 9 }),
  now: fc.constant(now),
  interval_ms: fc.constantFrom(60_000, 3_600_000, 86_400_000),
  is_readable: fc.boolean(),
  pause: fc.option(
    fc.record({ at: fc.option(time), by: fc.option(text), failed_runs: fc.option(fc.integer({ min: 1 })) }),
  ),
  is_scheduled: fc.boolean(),
  active_runs: fc.integer({ min: 0, max: 2 }),
  waiting: fc.integer({ min: 0, max: 2_000 }),
  missing: fc.record({ intervals: fc.integer({ min: 0, max: 2_000 }), oldest_end: fc.option(time) }),
  taken_slots: fc.option(fc.record({ slots: fc.integer({ min: 1 }), workers: fc.integer({ min: 1 }) })),
  taken_turns: fc.option(fc.integer({ min: 1 })),
  unstarted_since: fc.option(time),
  worker_seen_at: fc.option(time),
  workers_incident: fc.option(fc.uuid()),
  temporal_fault: fc.option(anyFault),
  source_fault: fc.option(anyFault),
  operator_fault: fc.option(anyFault),
  circuit: fc.option(fc.record({ error: text, opened_at: time, bucket: text, incident_id: fc.uuid() })),
  failed: fc.tuple(affected, affected).map(([all, byPerson]) => ({ ...all, ended_by_person: byPerson })),
  retrying: affected,
  held: affected,
  differing: affected,
  unsettled: affected,
  target_fault: fc.option(fc.record({ message: text, found_at: time })),
  coverage: fc.option(
    fc.record({
      ranges: fc.array(
        fc.record({
          start: fc.option(time),
          end: time,
          state: fc.constantFrom(...coverageStates),
          reason: fc.option(fc.constantFrom(...coverageReasons)),
        }),
        { maxLength: 3 },
      ),
      is_complete: fc.boolean(),
      next_end: fc.option(time),
      backfills: fc.option(
        fc.record({ finished: fc.nat(), total: fc.nat(), done_at: fc.option(time), is_paused: fc.boolean() }),
      ),
      sentence: text,
    }),
  ),
  holes: affected,
});

describe('for any facts, all surfaces agree', () => {
  it('on what the response of the API says', () => {
    fc.assert(
      fc.property(fc.array(anyFacts, { minLength: 1, maxLength: 4 }), (facts) => {
        const exports = facts.map((one) =>
          anExport({ id: one.id, lag: null, condition: conditionSchema.parse(conditionOf(one)) }),
        );
        // What the API sends is what was decided.
        expect(exports.map(({ condition }) => condition)).toEqual(facts.map((one) => conditionOf(one)));
        for (const { id, condition } of exports) {
          // The console has a look for it, and `ok` is the only one in green.
          expect(conditionLooks[condition.cause].tone === 'good').toBe(condition.cause === 'ok');
          const { severity, cause, summary } = condition;
          expect(conditionLines(condition)[0]).toBe(`Condition: ${cause} (${severity}): ${summary}`);
          expect(exportTable([anExport({ id, condition })])[1]?.endsWith(` ${cause}`)).toBe(true);
          const {
            actions: _actions,
            affected: _affected,
            incident: _incident,
            coverage: _coverage,
            ...notified
          } = condition;
          const message = messageBody(
            'json',
            {
              id,
              type: 'run.failed',
              created_at: now,
              data: { ...testNotificationData(1), condition: notified },
            },
            { EXPORTD_BASE_URL: undefined, EXPORTD_CONSOLE: false },
            null,
          );
          expect((JSON.parse(message) as { data: unknown }).data).toMatchObject({ condition: notified });
        }
        const sorted = exports.toSorted((one, other) => compareConditions(one.condition, other.condition));
        expect(statusRows(exports).map(([severity, cause, id]) => [severity, cause, id])).toEqual(
          sorted.map(({ id, condition }) => [condition.severity, condition.cause, id]),
        );
        expect(needsAttention({ status: 'ok' }, exports)).toBe(
          exports.some(({ condition }) => condition.severity !== 'ok'),
        );
      }),
      { numRuns: randomCases(300) },
    );
  });

  it('and none says that all is well while an interval is held, failed, different or missing between others', () => {
    const kinds = fc.constantFrom('held', 'failed', 'differing', 'holes');
    fc.assert(
      fc.property(anyFacts, kinds, affected, fc.boolean(), (facts, kind, found, isFine) => {
        const some = { ...found, intervals: found.intervals + 1 };
        const changed = { [kind]: kind === 'failed' ? { ...some, ended_by_person: none } : some };
        const { severity, summary } = conditionOf({ ...(isFine ? fine : facts), ...changed });
        expect(severity).not.toBe('ok');
        expect(summary).not.toBe('');
      }),
      { numRuns: randomCases(300) },
    );
  });
});
