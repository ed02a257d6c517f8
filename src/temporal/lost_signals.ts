import { isGrpcServiceError, ServiceError, type Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import type { Settings } from '../config/settings.ts';
import { storeHandSignal } from '../decisions/signals.ts';
import type { Journal } from '../journal/journal.ts';
import { createSignalCounter } from '../../workflows/hand_signals.ts';
import {
  isScheduleInput,
  workflowTypes,
  type ReceivedSignal,
  type ScheduleInput,
} from '../../workflows/messages.ts';
import { tamed } from '../../workflows/tame_signals.ts';
import { taskQueues } from './task_queues.ts';

/** Stores the signals of schedules that ended before they had stored them. */
export interface LostSignals {
  /** Reads the history of each schedule that failed, was terminated, cancelled or timed out, once in a process. */
  store(): Promise<void>;
}

/** How long ago a schedule may have ended when the reconciler comes to look, in milliseconds. */
const lookBackMs = 24 * 3_600_000;

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/**
 * A signal by hand is stored by the execution that received it. One that ends by force or by a fault leaves those that
 * waited in its history alone, from where they are stored here, under the ids that it would have given them: what it
 * had stored already is not stored again.
 */
export function createLostSignals(
  client: Client,
  journal: Journal,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE'>,
): LostSignals {
  const read = new Set<string>();
  const endedSchedules = (): AsyncIterable<{ workflowId: string; runId: string }> => {
    const since = new Date(Date.now() - lookBackMs).toISOString();
    return client.workflow.list({
      query:
        `WorkflowType = '${workflowTypes.schedule}' AND TaskQueue = '${taskQueues(settings).control}' ` +
        `AND ExecutionStatus IN ('Failed', 'Terminated', 'Canceled', 'TimedOut') AND CloseTime > '${since}'`,
    });
  };
  return {
    store: async () => {
      const faults: unknown[] = [];
      for await (const { workflowId, runId } of endedSchedules()) {
        if (read.has(runId)) continue;
        try {
          const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
          const { batch_export_id, signals } = signalsIn(events ?? []);
          // One that was started by hand may name nothing.
          if (batch_export_id !== undefined)
            for (const signal of signals) await storeHandSignal(journal, batch_export_id, signal);
          read.add(runId);
        } catch (error) {
          if (error instanceof ServiceError || isGrpcServiceError(error)) throw error;
          // It keeps no other from its turn, and is read again in the next pass.
          faults.push(error);
        }
      }
      if (faults.length > 0) throw faults[0];
    },
  };
}

/** The signals by hand that a history holds, numbered as the workflow numbers them. */
function signalsIn(events: readonly HistoryEvent[]): {
  batch_export_id: string | undefined;
  signals: ReceivedSignal[];
} {
  const started = events[0]?.workflowExecutionStartedEventAttributes;
  const input = inputOf(started?.input?.payloads?.[0]);
  const counter = createSignalCounter(started?.firstExecutionRunId ?? '', input?.ordinal);
  const received = events.flatMap(({ workflowExecutionSignaledEventAttributes: signaled }) => {
    if (!signaled) return [];
    const { name, payload } = tamed(signaled.signalName ?? '', signaled.input?.payloads ?? []);
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    const counted = counter.receive(name, value);
    return counted.is === 'wake' ? [] : [counted.signal];
  });
  return { batch_export_id: input?.batch_export_id, signals: [...(input?.signals ?? []), ...received] };
}

/** What a schedule was started with; undefined when that was by hand, with something else. */
function inputOf(payload: temporal.api.common.v1.IPayload | undefined): ScheduleInput | undefined {
  try {
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    return isScheduleInput(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
