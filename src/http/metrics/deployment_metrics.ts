import { Gauge, type Registry } from 'prom-client';
import type { Pool } from '../../journal/database.ts';
import { shareReading } from '../../telemetry/metrics.ts';
import type { TaskQueueState } from '../../temporal/clients/pollers.ts';

/** A reading serves every scrape of this time, in milliseconds. */
const maxAgeMs = 10_000;

/** What waits in the control database. */
interface Pending {
  readonly commands: number;
  readonly deliveries: number;
  readonly unavailable_destinations: number;
}

/**
 * Registers what concerns all processes of a deployment: whether the servers it needs respond, workers, task queues, and
 * what waits. Every server reports the same numbers.
 */
export function registerDeploymentMetrics(
  metrics: Registry,
  {
    pool,
    describeTaskQueues,
    cacheMs = maxAgeMs,
  }: {
    readonly pool: Pool;
    readonly describeTaskQueues: () => Promise<readonly TaskQueueState[]>;
    /** For tests. */
    readonly cacheMs?: number;
  },
): void {
  const registers = [metrics];
  const queues = shareReading(describeTaskQueues, cacheMs);
  const pending = shareReading(() => readPending(pool), cacheMs);

  const up: Gauge = new Gauge({
    name: 'exportd_dependency_up',
    help: 'Whether a server that exportd needs responds: 1 or 0.',
    labelNames: ['dependency'],
    registers,
    collect: async () => {
      up.set({ dependency: 'control_database' }, (await pending.read()) ? 1 : 0);
      up.set({ dependency: 'temporal' }, (await queues.read()) ? 1 : 0);
    },
  });
  const queueGauge = (
    name: string,
    help: string,
    value: (state: TaskQueueState) => number,
    isReported: (state: TaskQueueState) => boolean = () => true,
  ): void => {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: ['queue'],
      registers,
      collect: async () => {
        const states = (await queues.read()) ?? [];
        gauge.reset();
        for (const state of states) if (isReported(state)) gauge.set({ queue: state.name }, value(state));
      },
    });
  };
  queueGauge(
    'exportd_workers',
    'Worker processes that have polled a task queue within the last 70 seconds. Absent while Temporal does not respond.',
    ({ pollers }) => pollers,
  );
  queueGauge(
    'exportd_queued_tasks',
    'Tasks of Temporal that wait for a worker, approximately.',
    ({ backlog }) => backlog,
  );
  queueGauge(
    'exportd_queued_task_age_seconds',
    'How long the oldest waiting task has waited.',
    ({ backlog_age_seconds }) => backlog_age_seconds,
  );
  const pendingGauge = (name: string, help: string, value: (found: Pending) => number): void => {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers,
      collect: async () => {
        const found = await pending.read();
        gauge.remove();
        if (found) gauge.set(value(found));
      },
    });
  };
  pendingGauge(
    'exportd_unavailable_destinations',
    'Buckets that do not respond. Their runs wait, and one request at a time probes each.',
    ({ unavailable_destinations }) => unavailable_destinations,
  );
  pendingGauge(
    'exportd_pending_commands',
    'Commands of the API that no worker has applied yet.',
    ({ commands }) => commands,
  );
  pendingGauge(
    'exportd_pending_deliveries',
    'Messages to webhooks that wait for their first or next attempt.',
    ({ deliveries }) => deliveries,
  );
}

async function readPending(pool: Pool): Promise<Pending> {
  const { rows } = await pool.query<Pending>(
    `select (select count(*) from exportd.commands where status = 'pending') as commands,
       (select count(*) from exportd.webhook_deliveries where status = 'pending') as deliveries,
       -- Nobody probes a destination that no export uses any more.
       (select count(distinct circuit.destination) from exportd.destination_circuits circuit
        join exportd.destination_configs config on config.circuit = circuit.destination
        join exportd.batch_exports export
          on export.id = config.batch_export_id and export.config_version = config.version
        where circuit.opened_at is not null and not export.deleted and (not export.paused or exists (
          select from exportd.batch_export_runs run
          where run.batch_export_id = export.id and run.status in ('Starting', 'Running')))
       ) as unavailable_destinations`,
  );
  const [row] = rows;
  if (!row) throw new RangeError('A statement without FROM returns one row.');
  return row;
}
