import type { Client } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { rejectionIn, rejectionMessages } from '../../failures/grpc_errors.ts';
import { readOpenFaults, type OpenFault } from '../../failures/operator_faults.ts';
import type { Pool } from '../../journal/database.ts';
import type { SourceMonitor } from '../../source/source_connection.ts';
import { isPolling } from '../clients/pollers.ts';
import { untilAborted } from '../until_aborted.ts';

/** What a worker needs. Each is `ok` or the problem, without addresses or credentials. */
export interface WorkerReadiness {
  readonly status: 'ok' | 'unavailable';
  readonly control_database: string;
  readonly source: string;
  readonly temporal: string;
  /** Whether Temporal gives tasks to this process. */
  readonly polling: string;
  /** What the operator has to fix; null if the control database cannot be read. */
  readonly operator_faults:
    | readonly Pick<OpenFault, 'type' | 'message' | 'opened_at' | 'waiting_runs'>[]
    | null;
}

/** What readiness is read from. */
export interface ReadinessDependencies {
  readonly pool: Pool;
  readonly source: Pick<SourceMonitor, 'ping'>;
  readonly client: Client;
  readonly settings: Pick<Settings, 'EXPORTD_TASK_QUEUE_PREFIX'>;
  /** The name of the process among the pollers; undefined until its workers run. */
  readonly identity: () => string | undefined;
  /** Aborted when the process shuts down. */
  readonly stopping: AbortSignal;
}

/** Shorter than the timeout of most probes, in milliseconds. */
const timeoutMs = 4_000;

/** Checks everything that a worker needs, at once. A check that takes too long has failed. */
export async function readWorkerReadiness(dependencies: ReadinessDependencies): Promise<WorkerReadiness> {
  const { pool, source } = dependencies;
  const check = async (work: (signal: AbortSignal) => Promise<unknown>, problem: string): Promise<string> => {
    const signal = AbortSignal.timeout(timeoutMs);
    return untilAborted(work(signal), signal).then(
      () => 'ok',
      () => problem,
    );
  };
  const [control_database, sourceState, { temporal, polling }, faults] = await Promise.all([
    check(() => pool.query('select 1'), 'The control database cannot be reached.'),
    check((signal) => source.ping(signal), 'The source cannot be reached.'),
    readPolling(dependencies),
    readOpenFaults(pool).catch(() => null),
  ]);
  const checks = { control_database, source: sourceState, temporal, polling };
  return {
    status: Object.values(checks).every((state) => state === 'ok') ? 'ok' : 'unavailable',
    ...checks,
    operator_faults:
      faults?.map(({ type, message, opened_at, waiting_runs }) => ({
        type,
        message,
        opened_at,
        waiting_runs,
      })) ?? null,
  };
}

async function readPolling({
  client,
  settings,
  identity,
  stopping,
}: ReadinessDependencies): Promise<Pick<WorkerReadiness, 'temporal' | 'polling'>> {
  const name = identity();
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const polls = await untilAborted(isPolling(client, settings, name ?? ''), signal);
    if (stopping.aborted) return { temporal: 'ok', polling: 'The worker is shutting down.' };
    if (name === undefined) return { temporal: 'ok', polling: 'The workers have not started yet.' };
    return { temporal: 'ok', polling: polls ? 'ok' : 'Temporal has no poll of this worker.' };
  } catch (error) {
    const rejection = rejectionIn(error);
    const temporal = rejection ? rejectionMessages[rejection] : 'Temporal cannot be reached.';
    return { temporal, polling: temporal };
  }
}
