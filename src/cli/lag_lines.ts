import { type RunStatus, runStatusLabels } from '../domain/run_state.ts';
import { formatDuration } from './format_duration.ts';
import { counted, table } from './output.ts';

/** The lag of an export, as in the response of the API. */
export interface Lag {
  readonly intervals: number;
  readonly seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: readonly {
    readonly data_interval_start: string;
    readonly data_interval_end: string;
    readonly run_id: string;
    readonly status: RunStatus;
  }[];
}

/** Formats the lag of an export, with the gaps that need a manual retry. */
export function lagLines(lag: Lag | null): string[] {
  if (lag === null)
    return ['Lag: unknown, since the server cannot read the schedule. Its log has the reason.'];
  const { intervals, seconds, last_completed_interval_end, gaps } = lag;
  const summary = `Lag: ${counted(intervals, 'interval')}, ${formatDuration(seconds)}. `;
  const newest = `Newest completed interval: ${last_completed_interval_end ?? 'none'}.`;
  if (gaps.length === 0) return [summary + newest];
  return [
    summary + newest,
    'Gaps, which only a retry of the run fills:',
    ...table(
      ['interval start', 'interval end', 'status', 'run'],
      gaps.map((gap) => [
        gap.data_interval_start,
        gap.data_interval_end,
        runStatusLabels[gap.status],
        gap.run_id,
      ]),
    ),
  ];
}
