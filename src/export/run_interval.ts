import type { DataInterval } from '../domain/intervals.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { RowRange } from '../source/source.ts';

/** The interval of a run. */
export const intervalOf = (
  spec: Pick<RunSpec, 'data_interval_start' | 'data_interval_end'>,
): DataInterval => ({ start: spec.data_interval_start, end: spec.data_interval_end });

/** The selected rows of a run's interval. */
export const rowRangeOf = (
  spec: Pick<RunSpec, 'model' | 'team_id' | 'data_interval_start' | 'data_interval_end'>,
  selection: RowSelection,
): RowRange => ({ model: spec.model, team_id: spec.team_id, interval: intervalOf(spec), selection });

/** A run's interval as the export's log shows it. */
export const formatInterval = ({ spec }: Pick<ExistingRun, 'spec'>): string =>
  `${spec.data_interval_start} to ${spec.data_interval_end}`;
