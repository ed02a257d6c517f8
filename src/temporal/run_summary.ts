import type { StartableRun } from '../decisions/startable_runs.ts';

const longestName = 100;

/** A run in one line for the Temporal UI: `events of "Shop", 2026-11-01 10:00–11:00`, times in UTC. */
export function runSummary(
  run: Pick<StartableRun, 'model' | 'batch_export_name' | 'data_interval_start' | 'data_interval_end'>,
): string {
  const [startDay = '', startTime = ''] = readable(run.data_interval_start);
  const [endDay = '', endTime = ''] = readable(run.data_interval_end);
  const end = startDay === endDay ? endTime : `${endDay} ${endTime}`;
  return `${run.model} of "${run.batch_export_name.slice(0, longestName)}", ${startDay} ${startTime}–${end}`;
}

const readable = (time: string): string[] => time.slice(0, 16).split('T');
