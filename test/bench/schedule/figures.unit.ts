import { describe, expect, it } from '@jest/globals';
import proto from '@temporalio/proto';
import { delaysOf, percentileOf } from '../../../src/bench/schedule/delays.ts';
import type { BareResult } from '../../../src/bench/schedule/document.ts';
import { comparedWithBare, type MeasuredBackfill } from '../../../src/bench/schedule/empty_backfill.ts';
import { costOf } from '../../../src/bench/schedule/histories.ts';
import { delaysOfRuns, dueTimes, type TickedRun } from '../../../src/bench/schedule/tick_delays.ts';
import { runWorkflowId } from '../../../src/contract/workflow_ids.ts';

const { EventType } = proto.temporal.api.enums.v1;

describe('delays', () => {
  it('have percentiles that are among them', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentileOf(hundred, 0.5)).toBe(50);
    expect(percentileOf(hundred, 0.99)).toBe(99);
    expect(percentileOf([7], 0.99)).toBe(7);
    expect(() => percentileOf([], 0.5)).toThrow(RangeError);
  });

  it('are told in seconds', () => {
    expect(delaysOf([1_500, -3, 250])).toEqual({ count: 3, p50: 0.25, p99: 1.5, maximum: 1.5 });
  });
});

describe('the delays of runs', () => {
  const interval = 'every 5 minutes';
  const jitterMs = (_: string, name: string, { start }: { start: string }) =>
    name === interval && start === '2026-11-21T10:00:00.000Z' ? 20_000 : Number.NaN;
  const run = (batch_export_id: string, more: Partial<TickedRun> = {}): TickedRun => ({
    id: batch_export_id,
    batch_export_id,
    data_interval_start: '2026-11-21T10:00:00.000Z',
    data_interval_end: '2026-11-21T10:05:00.000Z',
    status: 'Completed',
    manifest_key: 'manifest',
    records_completed: 0,
    created_at: '2026-11-21T10:05:21.000Z',
    finished_at: '2026-11-21T10:05:52.500Z',
    ...more,
  });

  it('begin when the interval has ended and the jitter is over', () => {
    const runs = [
      run('a'),
      run('b', { status: 'Failed' }),
      run('c', { status: 'Starting', finished_at: null }),
    ];
    const tasks = new Map([[runWorkflowId(run('a')), Date.parse('2026-11-21T10:05:20.250Z')]]);
    expect(delaysOfRuns(runs, dueTimes(interval, jitterMs), tasks)).toEqual({
      due_to_opened: { count: 3, p50: 1, p99: 1, maximum: 1 },
      due_to_first_task: { count: 1, p50: 0.25, p99: 0.25, maximum: 0.25 },
      due_to_completed: { count: 1, p50: 32.5, p99: 32.5, maximum: 32.5 },
    });
  });

  it('are none where nothing got so far', () => {
    expect(delaysOf([])).toEqual({ count: 0, p50: null, p99: null, maximum: null });
  });
});

describe('the cost of a history', () => {
  it('counts all local activities of one workflow task once', () => {
    const marker = (markerName: string, workflowTaskCompletedEventId: number) => ({
      eventType: EventType.EVENT_TYPE_MARKER_RECORDED,
      markerRecordedEventAttributes: { markerName, workflowTaskCompletedEventId },
    });
    const events = [
      { eventType: EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED },
      { eventType: EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED },
      marker('core_local_activity', 4),
      marker('core_local_activity', 4),
      marker('core_local_activity', 9),
      marker('core_patch', 9),
      { eventType: EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED },
      { eventType: EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED },
      { eventType: EventType.EVENT_TYPE_TIMER_STARTED },
      { eventType: EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED },
      { eventType: EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES },
      { eventType: EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED },
    ];
    expect(costOf(events as unknown as Parameters<typeof costOf>[0])).toEqual({ events: 12, actions: 8 });
  });
});

describe('a backfill beside bare workflows', () => {
  it('is compared with the most at once, and with as many as it has itself', () => {
    const bare = (at_once: number, per_second: number) => ({ at_once, per_second }) as BareResult;
    const backfill = { at_once: 3, runs_per_second: 15 } as MeasuredBackfill;
    expect(comparedWithBare(backfill, [bare(20, 28), bare(3, 18), bare(20, 32), bare(3, 22)])).toMatchObject({
      ratio_to_bare: 0.5,
      ratio_to_bare_at_once: 0.75,
    });
  });
});
