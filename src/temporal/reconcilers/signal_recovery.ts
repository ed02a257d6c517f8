import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { createSignalCounter } from '../../../workflows/manual_signals.ts';
import { normalizeSignal } from '../../../workflows/normalize_signals.ts';
import type { Settings } from '../../config/settings.ts';
import type { ReceivedSignal } from '../../contract/signals.ts';
import { isScheduleInput, type ScheduleInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { storeManualSignal } from '../../decisions/manual_signals.ts';
import { isTemporalError } from '../../failures/grpc_errors.ts';
import type { Journal } from '../../journal/journal.ts';
import { taskQueues } from '../task_queues.ts';

/** Stores the manual signals of schedules that ended before they stored them. */
export interface SignalRecovery {
  /**
   * Reads the history of each schedule that failed, timed out, was terminated or cancelled; each once per process.
   * @throws ServiceError of @temporalio/client when Temporal does not respond; the first other error after all histories
   */
  recover(): Promise<void>;
}

const maxAgeMs = 24 * 3_600_000;

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/**
 * A schedule stores the manual signals that it receives. If it ends abnormally before, they remain only in its history.
 * The recovery stores them from there, under the ids that the schedule would have given them, so a signal that was stored
 * already is not stored twice.
 */
export function createSignalRecovery(
  client: Client,
  journal: Journal,
  settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>,
): SignalRecovery {
  const recovered = new Set<string>();
  const endedSchedules = (): AsyncIterable<{ workflowId: string; runId: string }> => {
    const since = new Date(Date.now() - maxAgeMs).toISOString();
    return client.workflow.list({
      query:
        `WorkflowType = '${workflowTypes.schedule}' AND TaskQueue = '${taskQueues(settings).control}' ` +
        `AND ExecutionStatus IN ('Failed', 'Terminated', 'Canceled', 'TimedOut') AND CloseTime > '${since}'`,
    });
  };
  return {
    recover: async () => {
      const errors: unknown[] = [];
      for await (const { workflowId, runId } of endedSchedules()) {
        if (recovered.has(runId)) continue;
        try {
          const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
          const { batch_export_id, signals } = signalsIn(events ?? []);
          // A manually started schedule may name no export.
          if (batch_export_id !== undefined)
            for (const signal of signals) await storeManualSignal(journal, batch_export_id, signal);
          recovered.add(runId);
        } catch (error) {
          if (isTemporalError(error)) throw error;
          // Continue with the others; the next pass reads this one again.
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
}

/** The manual signals in a history, numbered as the workflow numbers them. */
function signalsIn(events: readonly HistoryEvent[]): {
  batch_export_id: string | undefined;
  signals: ReceivedSignal[];
} {
  const started = events[0]?.workflowExecutionStartedEventAttributes;
  const input = inputOf(started?.input?.payloads?.[0]);
  const counter = createSignalCounter(started?.firstExecutionRunId ?? '', input?.ordinal);
  const received = events.flatMap(({ workflowExecutionSignaledEventAttributes: signaled }) => {
    if (!signaled) return [];
    const { name, payload } = normalizeSignal(signaled.signalName ?? '', signaled.input?.payloads ?? []);
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    const counted = counter.receive(name, value);
    return counted.type === 'wake' ? [] : [counted.signal];
  });
  return { batch_export_id: input?.batch_export_id, signals: [...(input?.signals ?? []), ...received] };
}

/** The input of a schedule; undefined when it was started manually with something else. */
function inputOf(payload: temporal.api.common.v1.IPayload | undefined): ScheduleInput | undefined {
  try {
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    return isScheduleInput(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
