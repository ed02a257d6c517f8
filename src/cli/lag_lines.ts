import { runStatusLabels, type RunStatus } from '../domain/run.ts';
import { table } from './output.ts';

/** How far an export is behind, as the service answers it. */
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

/** The lag of an export for people, with the intervals that wait for a person. */
export function lagLines({ intervals, seconds, last_completed_interval_end, gaps }: Lag): string[] {
  const behind = `Behind: ${intervals} ${intervals === 1 ? 'interval' : 'intervals'}, ${seconds} s. `;
  const last = `Newest completed interval: ${last_completed_interval_end ?? 'none'}.`;
  if (gaps.length === 0) return [behind + last];
  return [
    behind + last,
    'Gaps, which nothing fills by itself; retry the run:',
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
