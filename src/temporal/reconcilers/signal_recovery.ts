import type { Client } from '@temporalio/client';
import { defaultPayloadConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { normalizeIdentity, normalizeSignal } from '../../../workflows/interceptors.ts';
import { isScheduleInput, type ReceivedSignal, type ScheduleInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_ids.ts';
import { storeManualSignal } from '../../decisions/manual_signals.ts';
import type { Policies } from '../../decisions/policies.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ExecutionLists, ListedExecution } from '../clients/executions.ts';
import { decodePayloads } from '../payload_codecs.ts';
import { createSignalCounter } from '../../../workflows/signal_counter.ts';

/** Stores the manual signals of schedules that ended before they stored them. */
export interface SignalRecovery {
  /**
   * Lists the schedules of the last day that failed, timed out, were terminated or cancelled, and whose signals this
   * process has not recovered yet.
   * @throws ServiceError of @temporalio/client when Temporal does not respond
   */
  endedSchedules(): Promise<ListedExecution[]>;
  /** Reads the history of one of them. Returns whether it had manual signals. */
  recover(schedule: ListedExecution): Promise<boolean>;
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
  executionLists: ExecutionLists,
  journal: Journal,
  policies: Pick<Policies, 'allowsManualSignals'>,
): SignalRecovery {
  let recovered = new Set<string>();
  return {
    endedSchedules: async () => {
      const since = new Date(Date.now() - maxAgeMs);
      const ended = await executionLists.closedAbnormally(workflowTypes.schedule, since);
      // Forgets those that are no longer listed.
      recovered = new Set(
        ended.map(({ temporal_run_id }) => temporal_run_id).filter((id) => recovered.has(id)),
      );
      return ended.filter(({ temporal_run_id }) => !recovered.has(temporal_run_id));
    },
    recover: async ({ workflow_id, temporal_run_id }) => {
      const { events } = await client.workflow.getHandle(workflow_id, temporal_run_id).fetchHistory();
      const { batch_export_id, signals } = await signalsIn(client, events ?? []);
      // A manually started schedule may name no export.
      if (batch_export_id !== undefined)
        for (const signal of signals) await storeManualSignal(journal, policies, batch_export_id, signal);
      recovered.add(temporal_run_id);
      return batch_export_id !== undefined && signals.length > 0;
    },
  };
}

/** The manual signals in a history, numbered as the workflow numbers them. */
async function signalsIn(
  client: Client,
  events: readonly HistoryEvent[],
): Promise<{ batch_export_id: string | undefined; signals: ReceivedSignal[] }> {
  const started = events[0]?.workflowExecutionStartedEventAttributes;
  const input = inputOf(await decodePayloads(client, started?.input?.payloads ?? []));
  const counter = createSignalCounter(started?.firstExecutionRunId ?? '', input?.ordinal);
  const received: ReceivedSignal[] = [];
  for (const { workflowExecutionSignaledEventAttributes: signaled } of events) {
    if (!signaled) continue;
    const payloads = await decodePayloads(client, signaled.input?.payloads ?? []);
    const { name, payload } = normalizeSignal(signaled.signalName ?? '', payloads);
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    const counted = counter.receive(name, value, normalizeIdentity(signaled.identity));
    if (counted.type !== 'wake') received.push(counted.signal);
  }
  return { batch_export_id: input?.batch_export_id, signals: [...(input?.signals ?? []), ...received] };
}

/** The input of a schedule; undefined when it was started manually with something else. */
function inputOf([payload]: readonly temporal.api.common.v1.IPayload[]): ScheduleInput | undefined {
  try {
    const value: unknown = payload && defaultPayloadConverter.fromPayload(payload);
    return isScheduleInput(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
