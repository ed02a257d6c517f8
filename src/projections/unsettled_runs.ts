import type { OpenBarrier, UnsettledBarrier } from '../domain/barrier.ts';
import type { Model } from '../domain/batch_export.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import { existingRun, type Projection } from './projection.ts';
import { byKey, type CachedTable, type RowCache } from './row_cache.ts';

interface UnsettledRow {
  readonly batch_export_id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
  readonly run_id: string;
  readonly model: Model;
  readonly barrier: UnsettledBarrier | OpenBarrier | null;
  readonly is_repeated: boolean;
}

const table: CachedTable<UnsettledRow> = {
  name: 'exportd.unsettled_runs',
  key: ['batch_export_id', 'data_interval_start', 'data_interval_end'],
  lookups: { run: { columns: ['run_id'] }, export: { columns: ['batch_export_id'] } },
};

/** One row per interval whose current manifest was exported while transactions of the source were open. */
export const unsettledRunsProjection: Projection = {
  name: 'unsettled_runs',
  version: 1,
  reads: ['stream_states'],
  owns: ['exportd.unsettled_runs'],
  tables: `
    create table exportd.unsettled_runs (
      batch_export_id uuid not null,
      data_interval_start timestamptz not null,
      data_interval_end timestamptz not null,
      -- The run of the current manifest.
      run_id uuid not null unique,
      model text not null,
      -- The state of its barrier; null once the interval is exported again. The row remains until that run completes.
      barrier jsonb,
      -- Whether the run was itself requested because the transactions of an earlier run had ended.
      is_repeated boolean not null default false,
      primary key (batch_export_id, data_interval_start, data_interval_end)
    );
    create index unsettled_runs_waiting on exportd.unsettled_runs (run_id) where barrier is not null`,
  cached: [table],
  wants: ({ stream_type, stored, state }) => {
    if (stored.type === 'BatchExportDeleted')
      return [{ table, lookup: 'export', values: [stored.stream_id] }];
    if (stored.type === 'RunBarrierAdvanced' || stored.type === 'RunSettled')
      return [{ table, lookup: 'run', values: [stored.stream_id] }];
    if (stream_type !== 'run' || stored.type !== 'RunCompleted') return [];
    return [{ table, lookup: byKey, values: intervalOf(existingRun(state)) }];
  },
  fold: (rows, { stream_type, stored, state }) => {
    if (stored.type === 'BatchExportDeleted')
      for (const row of rows.find(table, 'export', stored.stream_id)) rows.delete(table, row);
    if (stored.type === 'RunBarrierAdvanced')
      for (const row of rows.find(table, 'run', stored.stream_id))
        rows.change(table, row, { barrier: stored.data.barrier });
    if (stored.type === 'RunSettled')
      for (const row of rows.find(table, 'run', stored.stream_id))
        if (stored.data.outcome === 'exported_again') rows.change(table, row, { barrier: null });
        else rows.delete(table, row);
    if (stream_type === 'run' && stored.type === 'RunCompleted')
      replaceManifest(rows, stored.stream_id, existingRun(state));
  },
};

const intervalOf = ({ spec }: ExistingRun) => [
  spec.batch_export_id,
  spec.data_interval_start,
  spec.data_interval_end,
];

/** The run's manifest is current from here on. The barrier of the former one no longer matters. */
function replaceManifest(rows: RowCache, run_id: string, { spec, unsettled_barrier }: ExistingRun): void {
  const { batch_export_id, data_interval_start, data_interval_end, model } = spec;
  const former = rows.get(table, batch_export_id, data_interval_start, data_interval_end);
  if (former) rows.delete(table, former);
  if (unsettled_barrier === null) return;
  rows.set(table, {
    batch_export_id,
    data_interval_start,
    data_interval_end,
    run_id,
    model,
    barrier: unsettled_barrier,
    is_repeated: former?.barrier === null,
  });
}
