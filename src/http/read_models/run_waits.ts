import { describeOpenCircuit, destinationUnavailable, type OpenCircuit } from '../../domain/circuit.ts';
import { activeRunStatuses } from '../../domain/run_state.ts';

/** What a run may wait for, as read from the database. */
export interface WaitColumns {
  /** The open circuit of an active run's destination. */
  readonly open_circuit: OpenCircuit | null;
  /** The operator's fault that an active run waits for. */
  readonly operator_fault: {
    readonly type: string;
    readonly message: string;
    readonly waiting_since: string;
  } | null;
}

const active = activeRunStatuses.map((status) => `'${status}'`).join(', ');

/**
 * SQL: the `WaitColumns` of a run. They are joined when a run is read, so that no outage writes to each run that waits.
 * @param run the name of exportd.batch_export_runs in the statement
 */
export const waitColumns = (run: string): string => `case when ${run}.status in (${active}) then (
  select json_build_object('error', circuit.error, 'opened_at', circuit.opened_at, 'next_probe_at', circuit.next_probe_at)
  from exportd.destination_configs config
  join exportd.destination_circuits circuit on circuit.destination = config.circuit and circuit.opened_at is not null
  where config.batch_export_id = ${run}.batch_export_id and config.version = ${run}.config_version
) end as open_circuit, case when ${run}.status in (${active}) then (
  select json_build_object('type', fault.type, 'message', fault.message, 'waiting_since', waiting.waiting_since)
  from exportd.operator_fault_runs waiting
  join exportd.operator_faults fault on fault.id = waiting.fault_id and fault.resolved_at is null
  where waiting.run_id = ${run}.id and waiting.resumed_at is null
) end as operator_fault`;

const isoTime = (time: string): string => new Date(time).toISOString();

/** Says what a run waits for, as `type: message`; null when it does not wait. */
export function describeWait({ open_circuit, operator_fault }: WaitColumns): string | null {
  if (operator_fault) {
    const { type, message, waiting_since } = operator_fault;
    return `${type}: ${message} Waiting for the operator since ${isoTime(waiting_since)}.`;
  }
  if (!open_circuit) return null;
  const { error, opened_at, next_probe_at } = open_circuit;
  return `${destinationUnavailable}: ${describeOpenCircuit({ error, opened_at: isoTime(opened_at), next_probe_at: isoTime(next_probe_at) })}`;
}
