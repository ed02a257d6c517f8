import { describe, expect, it } from '@jest/globals';
import proto from '@temporalio/proto';
import { costOf } from '../histories.ts';
import { compareWithNoop, type NoopResult } from './schedule_bench.ts';
import { delaysOf, delaysOfRuns, dueTimes, percentileOf, type TickedRun } from './ticks.ts';

const { EventType } = proto.temporal.api.enums.v1;

describe('delays', () => {
  it('have percentiles', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentileOf(hundred, 0.5)).toBe(50);
    expect(percentileOf(hundred, 0.99)).toBe(99);
    expect(percentileOf([7], 0.99)).toBe(7);
    expect(() => percentileOf([], 0.5)).toThrow(RangeError);
  });

  it('are converted to seconds', () => {
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

  it('start at the end of the interval plus jitter', () => {
    const runs = [
      run('a'),
      run('b', { status: 'Failed' }),
      run('c', { status: 'Starting', finished_at: null }),
    ];
    const tasks = new Map([['a', Date.parse('2026-11-21T10:05:20.250Z')]]);
    expect(delaysOfRuns(runs, dueTimes(interval, jitterMs), ({ id }) => tasks.get(id))).toEqual({
      due_to_created: { count: 3, p50: 1, p99: 1, maximum: 1 },
      due_to_first_task: { count: 1, p50: 0.25, p99: 0.25, maximum: 0.25 },
      due_to_completed: { count: 1, p50: 32.5, p99: 32.5, maximum: 32.5 },
    });
  });

  it('are null without runs', () => {
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

describe('a backfill compared with no-op workflows', () => {
  it('is compared at maximum concurrency and at its own', () => {
    const noop = (concurrency: number, per_second: number) =>
      ({ concurrency: concurrency, per_second }) as NoopResult;
    const backfill = { concurrency: 3, runs_per_second: 15 };
    expect(compareWithNoop(backfill, [noop(20, 28), noop(3, 18), noop(20, 32), noop(3, 22)])).toMatchObject({
      ratio_to_noop: 0.5,
      ratio_to_noop_at_same_concurrency: 0.75,
    });
  });
});
