import { describe, expect, it } from '@jest/globals';
import proto from '@temporalio/proto';
import { costOf } from '../histories.ts';
import type { NoopResult } from './noop_rate.ts';
import { compareWithNoop } from './schedule_bench.ts';

const { EventType } = proto.temporal.api.enums.v1;

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
