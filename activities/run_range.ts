import type { OpenedRun, RunSubject } from '../src/domain/run.ts';
import type { RowSelection } from '../src/source/row_selection.ts';
import type { RowRange } from '../src/source/source.ts';

type RangeSubject = Pick<RunSubject, 'model' | 'team_id' | 'data_interval_start' | 'data_interval_end'>;

/** The rows of a run's interval that its export takes. */
export const rowRangeOf = (
  { subject }: { readonly subject: RangeSubject },
  selection: RowSelection,
): RowRange => ({
  model: subject.model,
  team_id: subject.team_id,
  interval: { start: subject.data_interval_start, end: subject.data_interval_end },
  selection,
});

/** A run's interval in the export's log. */
export const intervalOf = ({ subject }: Pick<OpenedRun, 'subject'>): string =>
  `${subject.data_interval_start} to ${subject.data_interval_end}`;
