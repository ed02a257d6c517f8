import { type RunStatus, runStatusLabels } from '../domain/run_state.ts';
import { table } from './output.ts';
import type { JsonObject } from './commands/service_command.ts';

/** Formats batch exports. */
export const exportTable = (exports: readonly JsonObject[]): string[] =>
  table(
    ['id', 'name', 'model', 'interval', 'paused'],
    exports.map((one) => [one.id, one.name, one.model, one.interval, one.paused]),
  );

/** Formats runs. */
export const runTable = (runs: readonly JsonObject[]): string[] =>
  table(
    ['id', 'interval start', 'interval end', 'status', 'rows', 'latest error'],
    runs.map((run) => [
      run.id,
      run.data_interval_start,
      run.data_interval_end,
      runStatusLabels[run.status as RunStatus],
      run.records_completed,
      run.status_detail ?? run.latest_error,
    ]),
  );

/** Formats backfills with their progress. */
export const backfillTable = (backfills: readonly JsonObject[]): string[] =>
  table(
    ['id', 'start', 'end', 'status', 'runs', 'failed', 'rows'],
    backfills.map(({ id, start_at, end_at, status, progress }) => {
      const { finished_runs, total_runs, failed_runs, records_completed } = (progress ?? {}) as JsonObject;
      const runs = progress ? `${String(finished_runs)} of ${String(total_runs)}` : null;
      return [id, start_at, end_at, status, runs, failed_runs, records_completed];
    }),
  );

/** Formats the fields of one object, a line for each; objects and lists as JSON. */
export const fieldTable = (fields: JsonObject): string[] =>
  table(
    ['field', 'value'],
    Object.entries(fields).map(([name, value]) => [name.replaceAll('_', ' '), value]),
  );

/** Formats the destination and the schedule of a batch export. */
export function definitionLines({ destination, ...definition }: JsonObject): string[] {
  const { type, config } = (destination ?? {}) as { type?: string; config?: JsonObject };
  const { bucket_name, prefix, file_format, compression, compression_level, endpoint_url } = config ?? {};
  const level = typeof compression_level === 'number' ? ` ${compression_level}` : '';
  const { interval, timezone, offset_day, offset_hour, start_at, end_at, dialect_query } = definition;
  const parts = (...found: (string | false)[]): string => found.filter((part) => part !== false).join(', ');
  return [
    `Destination: ${parts(
      `${String(type)} ${String(bucket_name)}/${String(prefix)}`,
      `${String(file_format)}${typeof compression === 'string' ? ` with ${compression}${level}` : ''}`,
      typeof endpoint_url === 'string' && `at ${endpoint_url}`,
    )}`,
    `Schedule: ${parts(
      `${String(interval)} in ${String(timezone)}`,
      typeof offset_day === 'number' && `from day ${offset_day}`,
      typeof offset_hour === 'number' && `from hour ${offset_hour}`,
      typeof start_at === 'string' && `starts ${start_at}`,
      typeof end_at === 'string' && `ends ${end_at}`,
    )}`,
    ...(typeof dialect_query === 'string' ? [`Query: ${dialect_query}`] : []),
  ];
}
