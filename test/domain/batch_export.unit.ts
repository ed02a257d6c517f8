import { describe, expect, it } from '@jest/globals';
import { decideBackfill, decideRetry } from '../../src/domain/backfill.ts';
import {
  batchExportDecider,
  type BatchExportDefinition,
  type BatchExportEvent,
  type BatchExportState,
  decideCreate,
  decideDelete,
  decideNextInterval,
  decidePause,
  decideUnpause,
  decideUpdate,
  expirationOf,
  isExpired,
} from '../../src/domain/batch_export.ts';
import { given } from './decider_specification.ts';
import { definitionOf } from './definition.ts';

describe('a batch export', () => {
  const definition = definitionOf({ name: 'Hourly events' });
  const at = (time: string) => new Date(`2026-11-01T${time}Z`);
  const iso = (time: string) => at(time).toISOString();
  const created: BatchExportEvent = {
    type: 'BatchExportCreated',
    data: { team_id: 1, definition, scheduled_until: iso('10:00:00'), paused: false },
  };
  const paused = (time: string) => ({
    type: 'BatchExportPaused' as const,
    data: { last_paused_at: null },
    recorded_at: iso(time),
  });
  const scheduled = (start: string, end: string): BatchExportEvent => ({
    type: 'IntervalScheduled',
    data: { run_id: `run of ${iso(start)}`, start: iso(start), end: iso(end) },
  });
  const next =
    (now: string, hasFreeSlot = true) =>
    (state: BatchExportState) =>
      decideNextInterval(state, {
        now: at(now),
        jitterMs: () => 0,
        hasFreeSlot: hasFreeSlot,
        runIdOf: (interval) => `run of ${interval.start}`,
      });
  const nextEvents =
    (now: string, hasFreeSlot = true) =>
    (state: BatchExportState) =>
      next(now, hasFreeSlot)(state).events;

  it('starts its schedule with the interval that contains its creation', () => {
    given(batchExportDecider, [])
      .when((state) => decideCreate(state, { team_id: 1, definition, paused: false, now: at('10:20:00') }))
      .then([created]);
  });

  it('is not created twice', () => {
    given(batchExportDecider, [created])
      .when((state) => decideCreate(state, { team_id: 1, definition, paused: false, now: at('10:20:00') }))
      .thenRejected('conflict');
  });

  it('schedules an interval once it has ended and no earlier', () => {
    const live = given(batchExportDecider, [created]);
    live.when(nextEvents('10:59:59')).then([]);
    live.when(nextEvents('11:00:00')).then([scheduled('10:00:00', '11:00:00')]);
    expect(next('10:59:59')(live.state).wake_at).toEqual(at('11:00:00'));
  });

  it('waits for a free slot', () => {
    given(batchExportDecider, [created]).when(nextEvents('15:00:00', false)).then([]);
  });

  it('catches up oldest first', () => {
    given(batchExportDecider, [created, scheduled('10:00:00', '11:00:00')])
      .when(nextEvents('15:00:00'))
      .then([scheduled('11:00:00', '12:00:00')]);
  });

  it('schedules nothing while paused', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when(nextEvents('15:00:00'))
      .then([]);
  });

  it('treats a second pause as a no-op', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decidePause(state, { last_paused_at: null }))
      .then([]);
  });

  it('continues with the interval that contains now, and records the skipped ones', () => {
    const unpaused: BatchExportEvent[] = [
      { type: 'BatchExportUnpaused', data: {} },
      {
        type: 'IntervalsSkipped',
        data: { start: iso('12:00:00'), end: iso('14:00:00'), reason: 'paused' },
      },
    ];
    // Paused at 12:10 with 10:00–11:00 and 11:00–12:00 not started: both stay due.
    const before = given(batchExportDecider, [created, paused('12:10:00')]);
    before.when((state) => decideUnpause(state, { now: at('14:30:00'), backfill_id: null })).then(unpaused);

    const after = [created, paused('12:10:00'), ...unpaused];
    given(batchExportDecider, after)
      .when(nextEvents('15:00:00'))
      .then([scheduled('10:00:00', '11:00:00')]);
    given(batchExportDecider, [
      ...after,
      scheduled('10:00:00', '11:00:00'),
      scheduled('11:00:00', '12:00:00'),
    ])
      .when(nextEvents('15:00:00'))
      .then([scheduled('14:00:00', '15:00:00')]);
  });

  it('skips nothing when it is unpaused within the same interval', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decideUnpause(state, { now: at('10:40:00'), backfill_id: 'b' }))
      .then([{ type: 'BatchExportUnpaused', data: {} }]);
  });

  it('backfills the missed intervals on request', () => {
    given(batchExportDecider, [created, paused('10:30:00')])
      .when((state) => decideUnpause(state, { now: at('12:10:00'), backfill_id: 'b' }))
      .then([
        { type: 'BatchExportUnpaused', data: {} },
        {
          type: 'IntervalsSkipped',
          data: { start: iso('10:00:00'), end: iso('12:00:00'), reason: 'paused' },
        },
        {
          type: 'BackfillRequested',
          data: {
            backfill_id: 'b',
            start_at: iso('10:00:00'),
            end_at: iso('12:00:00'),
            allow_shrink: false,
          },
        },
      ]);
  });

  it('includes an interval that ends at start_at or end_at, and skips those before', () => {
    const bounded = (fields: Partial<BatchExportDefinition>): BatchExportEvent => ({
      ...created,
      data: { ...created.data, definition: { ...definition, ...fields } },
    });
    const skipped: BatchExportEvent = {
      type: 'IntervalsSkipped',
      data: { start: iso('10:00:00'), end: iso('11:00:00'), reason: 'before start_at' },
    };
    const expectNext = (fields: Partial<BatchExportDefinition>, now: string, events: BatchExportEvent[]) => {
      given(batchExportDecider, [bounded(fields)])
        .when(nextEvents(now))
        .then(events);
    };
    const first = scheduled('10:00:00', '11:00:00');
    expectNext({ start_at: iso('11:00:00') }, '11:00:00', [first]);
    expectNext({ start_at: iso('11:00:01') }, '11:59:59', []);
    expectNext({ start_at: iso('11:00:01') }, '12:00:00', [skipped]);
    expectNext({ end_at: iso('11:00:00') }, '11:00:00', [first]);
    expectNext({ end_at: iso('10:59:59') }, '15:00:00', []);
  });

  it('bridges a change of interval from the first boundary without a run', () => {
    const update = given(batchExportDecider, [created]);
    const changed: BatchExportEvent = {
      type: 'BatchExportUpdated',
      data: { changes: { interval: 'day' }, schedule_effective_from: iso('10:00:00') },
    };
    update
      .when((state) => decideUpdate(state, { changes: { interval: 'day' }, now: at('10:30:00') }))
      .then([changed]);
    given(batchExportDecider, [created, changed])
      .when(
        (state) =>
          decideNextInterval(state, {
            now: new Date('2026-11-02T00:00:00Z'),
            jitterMs: () => 0,
            hasFreeSlot: true,
            runIdOf: () => 'bridge',
          }).events,
      )
      .then([
        {
          type: 'IntervalScheduled',
          data: { run_id: 'bridge', start: iso('10:00:00'), end: '2026-11-02T00:00:00.000Z' },
        },
      ]);
  });

  it('records no event for an update that changes nothing', () => {
    given(batchExportDecider, [created])
      .when((state) => decideUpdate(state, { changes: { name: 'Hourly events' }, now: at('10:30:00') }))
      .then([]);
  });

  it('rejects a backfill that is empty or ends in the future', () => {
    const live = given(batchExportDecider, [created]);
    const request = (start: string, end: string) => (state: BatchExportState) =>
      decideBackfill(state, {
        backfill_id: 'b',
        start_at: iso(start),
        end_at: iso(end),
        allow_shrink: false,
        now: at('12:00:00'),
        maxIntervals: 10,
      });
    live.when(request('11:00:00', '11:00:00')).thenRejected('invalid_input', /start_at/);
    live.when(request('11:00:00', '12:00:01')).thenRejected('invalid_input', /future/);
  });

  it('names the active run when a retry has to wait', () => {
    const interval = { start: iso('09:00:00'), end: iso('10:00:00') };
    given(batchExportDecider, [created])
      .when((state) =>
        decideRetry(state, {
          backfill_id: 'b',
          run_id: 'r',
          allow_shrink: false,
          interval,
          active_run_id: 'the-active-run',
        }),
      )
      .thenRejected('conflict', /the-active-run/);
  });

  it('does not exist after a delete, and a second delete is a no-op', () => {
    const deleted = given(batchExportDecider, [created, { type: 'BatchExportDeleted', data: {} }]);
    deleted.when(decideDelete).then([]);
    deleted.when((state) => decidePause(state, { last_paused_at: null })).thenRejected('not_found');
    deleted.when(nextEvents('15:00:00')).then([]);
  });
});

describe('an object expires', () => {
  const written_at = '2026-01-01T10:00:00.000Z';

  it.each([
    [null, null, null],
    ['2026-02-01T00:00:00.000Z', null, '2026-02-01T00:00:00.000Z'],
    [null, 10, '2026-01-11T10:00:00.000Z'],
    ['2026-02-01T00:00:00.000Z', 10, '2026-01-11T10:00:00.000Z'],
    ['2026-01-05T00:00:00.000Z', 10, '2026-01-05T00:00:00.000Z'],
  ])('by its rule (%s) or the retention of the export (%s days): %s', (expires_at, days, time) => {
    expect(expirationOf({ expires_at, written_at }, days)?.toISOString() ?? null).toBe(time);
  });

  it('exactly when its time comes', () => {
    const at = (now: string) => isExpired({ expires_at: null, written_at }, 1, new Date(now));
    expect([at('2026-01-02T09:59:59.999Z'), at('2026-01-02T10:00:00.000Z')]).toEqual([false, true]);
  });
});
