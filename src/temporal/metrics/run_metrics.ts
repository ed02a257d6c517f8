import { Counter, Histogram, type Registry } from 'prom-client';
import type { Settings } from '../../config/settings.ts';
import { models } from '../../domain/batch_export.ts';
import { isActiveStatus, type RunState, type RunStatus, runStatusLabels } from '../../domain/run_state.ts';
import type { RunEvent } from '../../domain/run_events.ts';
import type { AppendedEvent, CommitObserver } from '../../journal/journal.ts';
import type { StageObserver } from '../../export/export_context.ts';
import { exportLabels, exportLabelsOf } from './export_labels.ts';

/** Counts what the runs of this process do. */
export interface RunMetrics {
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

  const count = ({ stored, before, after }: AppendedEvent): void => {
    if (stored.stream_type !== 'run') return;
    const event = stored as unknown as RunEvent;
    const [former, run] = [before as RunState, after as RunState];
    if (run.status === 'Absent') return;
    const labels = perExport ? exportLabelsOf(run.spec) : {};
    const age = (Date.parse(stored.recorded_at) - Date.parse(run.created_at)) / 1_000;
    if (event.type === 'RunExportStarted' && former.status === 'Starting')
      stages.observe({ stage: 'wait' }, age);
    if (event.type === 'RunPartPlanned') {
      const { part } = event.data;
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
