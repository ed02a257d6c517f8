import type { OpenedRun } from '../src/domain/run.ts';
import type { RowRange } from '../src/source/source.ts';

/** The rows of a run's interval. */
export const rangeOf = ({ subject }: OpenedRun): RowRange => ({
  model: subject.model,
  team_id: subject.team_id,
  interval: { start: subject.data_interval_start, end: subject.data_interval_end },
});

/** A run's interval in the export's log. */
export const intervalOf = ({ subject }: OpenedRun): string =>
  `${subject.data_interval_start} to ${subject.data_interval_end}`;
