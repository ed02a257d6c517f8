import { type AddressInfo, createServer } from 'node:net';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Settings } from '../config/settings.ts';
import { models } from '../domain/batch_export.ts';
import { isActiveStatus, type RunSpec, type RunStatus, runStatusLabels } from '../domain/run_state.ts';
import type { MemoryBudget } from '../encoding/memory.ts';
import type { StageObserver } from '../export/stage_clock.ts';
import type { AppendedEvent, CommitObserver } from '../journal/journal.ts';
import type { ReconcilerStatistics } from './reconcilers/pass.ts';
import type { ActivitySlots } from './worker/activity_slots.ts';
import { observeS3Requests } from '../destination/s3_outcomes.ts';

/** The labels that name an export. */
const exportLabels = ['project_id', 'batch_export_id'] as const;

/** Names the export of a run. */
const exportLabelsOf = ({ team_id, batch_export_id }: RunSpec) => ({
  project_id: String(team_id),
  batch_export_id,
});

/** Counts what the runs of this process do. */
interface RunMetrics {
  /** For `openJournal`. */
  readonly onCommitted: CommitObserver;
  /** For the dependencies of exports. */
  readonly onStage: StageObserver;
}

/** Seconds, from a run of a minute to one of a month. */
const runBuckets = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400];
const stageBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600];

const finalStatuses = (Object.keys(runStatusLabels) as RunStatus[]).filter(
  (status) => !isActiveStatus(status),
);

/**
 * Registers the metrics of runs. They count events of the journal, so a repeated activity counts once. Series exist from
 * the start: `increase` does not see the first value of a new one. With EXPORTD_METRICS_PER_EXPORT they have an export's
 * labels, and start with its first run.
 */
export function createRunMetrics(
  metrics: Registry,
  { EXPORTD_METRICS_PER_EXPORT: perExport }: Pick<Settings, 'EXPORTD_METRICS_PER_EXPORT'>,
): RunMetrics {
  const registers = [metrics];
  const own = perExport ? exportLabels : [];
  const runs = new Counter({
    name: 'exportd_runs_total',
    help: 'Runs that have ended, by their final status.',
    labelNames: ['status', ...own],
    registers,
  });
  const rows = new Counter({
    name: 'exportd_rows_total',
    help: 'Rows in parts that were sent to a destination, those sent again included.',
    labelNames: ['model', ...own],
    registers,
  });
  const bytes = new Counter({
    name: 'exportd_bytes_total',
    help: 'Encoded bytes in parts that were sent to a destination, those sent again included.',
    labelNames: ['model', ...own],
    registers,
  });
  const duration = new Histogram({
    name: 'exportd_run_duration_seconds',
    help: 'Time from the creation of a run to its end, by its final status.',
    labelNames: ['status'],
    buckets: runBuckets,
    registers,
  });
  const stages = new Histogram({
    name: 'exportd_stage_seconds',
    help:
      'What runs wait for: `wait` from the creation of a run to its first attempt, then of each attempt the time that it ' +
      'waits for rows (`read`), their encoding (`encode`), the destination (`upload`) and the manifest (`publish`).',
    labelNames: ['stage'],
    buckets: stageBuckets,
    registers,
  });
  if (!perExport) {
    for (const status of finalStatuses) runs.inc({ status }, 0);
    for (const model of models) {
      rows.inc({ model }, 0);
      bytes.inc({ model }, 0);
    }
  }

  const count = ({ stream_type, stored, before: former, state: run }: AppendedEvent): void => {
    if (stream_type !== 'run') return;
    if (run.status === 'Absent') return;
    const labels = perExport ? exportLabelsOf(run.spec) : {};
    const age = (Date.parse(stored.recorded_at) - Date.parse(run.created_at)) / 1_000;
    if (stored.type === 'RunExportStarted' && former.status === 'Starting')
      stages.observe({ stage: 'wait' }, age);
    const isPlanned = stored.type === 'RunPartPlanned' || stored.type === 'RunUploadCreated';
    const part = isPlanned ? stored.data.part : undefined;
    if (part) {
      rows.inc({ model: run.spec.model, ...labels }, part.rows);
      bytes.inc({ model: run.spec.model, ...labels }, part.bytes);
    }
    const { status } = run;
    if (isActiveStatus(status) || former.status === status) return;
    runs.inc({ status, ...labels });
    duration.observe({ status }, age);
  };
  return {
    onCommitted: (events) => {
      for (const event of events) count(event);
    },
    onStage: (stage, seconds) => stages.observe({ stage }, seconds),
  };
}

/** Registers the slots of a worker process, by their task queue, and the memory of its rows. */
export function registerCapacityMetrics(
  metrics: Registry,
  {
    slots,
    memory,
    settings,
  }: {
    readonly slots: Readonly<Record<'export' | 'query' | 'jobs', Pick<ActivitySlots, 'use'>>>;
    readonly memory: Pick<MemoryBudget, 'held'>;
    readonly settings: Pick<Settings, 'EXPORTD_MEMORY_BUDGET'>;
  },
): void {
  const registers = [metrics];
  const gauge: Gauge = new Gauge({
    name: 'exportd_activity_slots',
    help:
      'Activity slots of this worker: `configured`, `running` an activity, and `yielded` to another one while theirs ' +
      'waits for a server that does not respond.',
    labelNames: ['queue', 'state'],
    registers,
    collect: () => {
      for (const [queue, { use }] of Object.entries(slots)) {
        const { slots: configured, running, yielded } = use();
        gauge.set({ queue, state: 'configured' }, configured);
        gauge.set({ queue, state: 'running' }, running);
        gauge.set({ queue, state: 'yielded' }, yielded);
      }
    },
  });
  const held: Gauge = new Gauge({
    name: 'exportd_reserved_memory_bytes',
    help: 'Memory of rows and encoded bytes of all runs of this worker.',
    registers,
    collect: () => held.set(memory.held()),
  });
  new Gauge({
    name: 'exportd_memory_budget_bytes',
    help: 'EXPORTD_MEMORY_BUDGET, above which this worker reads no further rows.',
    registers,
  }).set(settings.EXPORTD_MEMORY_BUDGET);
}

/** Registers what the reconcilers of this process have done. Only one worker at a time has passes. */
export function registerReconcilerMetrics(
  metrics: Registry,
  statistics: () => readonly ReconcilerStatistics[],
): void {
  const registers = [metrics];
  const counterOf = (
    name: string,
    help: string,
    labels: readonly string[],
    read: (counter: Counter, statistics: ReconcilerStatistics) => void,
  ): void => {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: ['reconciler', ...labels],
      registers,
      collect: () => {
        // The sums are kept by the reconcilers, and a counter can only be increased.
        counter.reset();
        for (const one of statistics()) read(counter, one);
      },
    });
  };
  counterOf(
    'exportd_reconciler_passes_total',
    'Passes of a reconciler by outcome.',
    ['outcome'],
    (counter, { name, passes }) => {
      for (const [outcome, count] of Object.entries(passes))
        counter.inc({ reconciler: name, outcome }, count);
    },
  );
  counterOf(
    'exportd_reconciler_repaired_items_total',
    'Items that a reconciler started, restarted, cancelled, signalled or recorded.',
    [],
    (counter, { name, totals }) => counter.inc({ reconciler: name }, totals.repaired),
  );
  counterOf(
    'exportd_reconciler_failed_items_total',
    'Items that a reconciler could not decide or repair.',
    [],
    (counter, { name, totals }) => counter.inc({ reconciler: name }, totals.failed),
  );
  const lastPass: Gauge = new Gauge({
    name: 'exportd_reconciler_last_pass_timestamp_seconds',
    help: 'When the last pass of a reconciler started. Absent in workers that do not reconcile.',
    labelNames: ['reconciler'],
    registers,
    collect: () => {
      for (const { name, last_pass } of statistics())
        if (last_pass) lastPass.set({ reconciler: name }, Date.parse(last_pass.started_at) / 1_000);
    },
  });
}

/** Seconds, from a HEAD to a part on a slow line. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Registers the requests of this process to S3 servers. @returns a function that stops counting */
export function registerS3Metrics(metrics: Registry): () => void {
  const requests = new Counter({
    name: 'exportd_s3_requests_total',
    help: 'Requests to S3 servers by operation and outcome. A request that the SDK repeats counts each time.',
    labelNames: ['operation', 'outcome'],
    registers: [metrics],
  });
  const duration = new Histogram({
    name: 'exportd_s3_request_duration_seconds',
    help: 'Duration of requests to S3 servers, failed ones included.',
    labelNames: ['operation'],
    buckets,
    registers: [metrics],
  });
  return observeS3Requests(({ operation, outcome, seconds }) => {
    requests.inc({ operation, outcome });
    duration.observe({ operation }, seconds);
  });
}

/** How long the SDK may take to write its metrics, in milliseconds. */
const timeoutMs = 5_000;

/** Finds a free port of the loopback address: the SDK's own server does not say which one it has chosen. */
export async function freeLoopbackAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

/** Reads the metrics of Temporal's SDK, `temporal_…`, from its own server. Empty if that does not respond. */
export async function readSdkMetrics(address: string): Promise<string> {
  try {
    const response = await fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(timeoutMs) });
    return response.ok ? await response.text() : '';
  } catch {
    return '';
  }
}
