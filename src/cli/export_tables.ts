import type {
  BatchExport,
  BatchExportBackfill,
  BatchExportCondition,
  BatchExportDifference,
  BatchExportInterval,
  BatchExportLag,
  BatchExportManifest,
  BatchExportReading,
  BatchExportRun,
} from '../client/client.ts';
import { compareConditions, concernOf, incidentsOf, type SharedIncident } from '../domain/condition.ts';
import { runStatusLabels } from '../domain/run_state.ts';
import { CliError } from './cli_error.ts';
import { counted } from '../domain/in_words.ts';
import { table } from './output.ts';
import type { Readiness } from './service_client.ts';

/** Units of time in seconds, the longest first. */
const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** Formats seconds with the two largest units, such as `2 h 5 min`. */
export function formatDuration(seconds: number): string {
  const parts: string[] = [];
  let rest = Math.round(seconds);
  for (const [unit, length] of units) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? '0 s' : parts.join(' ');
}

/** Formats batch exports. */
export const exportTable = (exports: readonly BatchExport[]): string[] =>
  table(
    ['id', 'name', 'model', 'interval', 'paused', 'condition'],
    exports.map((one) => [one.id, one.name, one.model, one.interval, one.paused, one.condition.cause]),
  );

/** Formats batch exports with what is exported of their time. */
export const exportListTable = (exports: readonly BatchExport[]): string[] =>
  table(
    ['id', 'name', 'model', 'interval', 'paused', 'condition', 'coverage'],
    exports.map(({ condition: { cause, coverage }, ...one }) => [
      one.id,
      one.name,
      one.model,
      one.interval,
      one.paused,
      cause,
      coverage?.sentence,
    ]),
  );

/** Formats a condition: what it is, who has to act since when, the commands that cure it, and what is exported. */
export const conditionLines = (condition: BatchExportCondition): string[] => {
  const { severity, cause, summary, since, owner, actions } = condition;
  return [
    `Condition: ${cause} (${severity}): ${summary}`,
    ...(severity === 'ok' ? [] : [`Since: ${since ?? 'unknown'}. To be cured by: ${owner}.`]),
    ...actions.map(({ command }) => `  ${command}`),
    ...coverageLines(condition),
  ];
};

/** What is exported, unless the summary is the same. */
export const coverageLines = ({ cause, coverage }: BatchExportCondition): string[] =>
  cause === 'ok' || coverage === null ? [] : [coverage.sentence];

/** Whether the rows of a run are in the bucket, or on their way: those of a failed run are not. */
const hasPublished = ({ status, manifest_key }: BatchExportRun): boolean =>
  manifest_key !== null || status === 'Starting' || status === 'Running';

/** Formats runs. */
export const runTable = (runs: readonly BatchExportRun[]): string[] =>
  table(
    ['id', 'interval start', 'interval end', 'status', 'rows', 'latest error'],
    runs.map((run) => [
      run.id,
      run.data_interval_start,
      run.data_interval_end,
      runStatusLabels[run.status],
      hasPublished(run) ? run.records_completed : null,
      run.status_detail ?? run.latest_error,
    ]),
  );

/** Formats backfills with their progress. */
export const backfillTable = (backfills: readonly BatchExportBackfill[]): string[] =>
  table(
    ['id', 'start', 'end', 'status', 'runs', 'unchanged', 'failed', 'rows', 'done about'],
    backfills.map(({ id, start_at, end_at, status, progress }) => [
      id,
      start_at,
      end_at,
      status,
      progress && `${progress.finished_runs} of ${progress.total_runs}`,
      progress?.unchanged_runs,
      progress?.failed_runs,
      progress?.records_completed,
      progress?.done_at,
    ]),
  );

/** Formats the fields of one object, a line for each; objects and lists as JSON. */
export const fieldTable = (fields: object): string[] =>
  table(
    ['field', 'value'],
    Object.entries(fields).map(([name, value]: [string, unknown]) => [name.replaceAll('_', ' '), value]),
  );

/** Formats the destination and the schedule of a batch export. */
export function definitionLines({ destination: { type, config }, ...definition }: BatchExport): string[] {
  const { bucket_name, prefix, file_format, compression, compression_level, endpoint_url } = config;
  const level = typeof compression_level === 'number' ? ` ${compression_level}` : '';
  const { interval, timezone, offset_day, offset_hour, start_at, end_at, dialect_query } = definition;
  const parts = (...found: (string | false)[]): string => found.filter((part) => part !== false).join(', ');
  return [
    `Destination: ${parts(
      `${type} ${String(bucket_name)}/${String(prefix)}`,
      `${String(file_format)}${typeof compression === 'string' ? ` with ${compression}${level}` : ''}`,
      typeof endpoint_url === 'string' && `at ${endpoint_url}`,
    )}`,
    `Schedule: ${parts(
      `${interval} in ${timezone}`,
      offset_day !== null && `from day ${offset_day}`,
      offset_hour !== null && `from hour ${offset_hour}`,
      start_at !== null && `starts ${start_at}`,
      end_at !== null && `ends ${end_at}`,
    )}`,
    ...(dialect_query === null ? [] : [`Query: ${dialect_query}`]),
  ];
}

/** Formats entries of the interval ledger. */
export const intervalTable = (intervals: readonly BatchExportInterval[]): string[] =>
  table(
    ['interval start', 'interval end', 'status', 'generation', 'rows', 'bytes', 'compared', 'run', 'detail'],
    intervals.map((interval) => [
      interval.data_interval_start,
      interval.data_interval_end,
      interval.status,
      interval.generation,
      interval.rows,
      interval.bytes,
      comparisonOf(interval),
      interval.run_id,
      intervalDetail(interval),
    ]),
  );

/** Formats the manifests of an export. */
export const manifestTable = (manifests: readonly BatchExportManifest[]): string[] =>
  table(
    ['completed', 'interval start', 'interval end', 'generation', 'rows', 'bytes', 'key'],
    manifests.map((manifest) => [
      manifest.completed_at,
      manifest.data_interval_start,
      manifest.data_interval_end,
      manifest.generation,
      manifest.rows,
      manifest.bytes,
      manifest.key,
    ]),
  );

/**
 * The programs that read an export, each under its name; of one reader, the program alone. @throws CliError when there is none for
 * the reader
 */
export function recipeLines({ recipes }: BatchExportReading, reader: string | undefined): string[] {
  if (reader === undefined)
    return recipes.flatMap((recipe) => [
      `=== ${recipe.reader}${recipe.tested ? '' : ' (the tests of exportd do not run it)'}`,
      '',
      recipe.code,
    ]);
  const found = recipes.find((recipe) => recipe.reader.toLowerCase() === reader.toLowerCase());
  if (!found)
    throw new CliError(
      `There is no program for "${reader}". Readers of these files: ${recipes.map((recipe) => recipe.reader).join(', ')}.`,
    );
  return [found.code.trimEnd()];
}

const comparisonOf = ({ comparison }: BatchExportInterval): string | null =>
  comparison && `${comparison.outcome} ${comparison.compared_at}`;

/** What a person has to know beside the status: the error, the reason, or how many intervals a range has. */
function intervalDetail({
  status,
  reason,
  latest_error,
  intervals,
  expires_at,
}: BatchExportInterval): string | null {
  if (status === 'expired') return `expired ${String(expires_at)}`;
  if (['failed', 'gap', 'held', 'running'].includes(status) && latest_error !== null) return latest_error;
  return intervals > 1 ? `${intervals} intervals${reason === null ? '' : `: ${reason}`}` : reason;
}

/** Formats the rows of an interval that its files have and the source lacks, and what was decided about them. */
export function differenceLines(difference: BatchExportDifference): string[] {
  const { missing_rows, is_exact, rows, last_inserted_at, decision } = difference;
  const [first] = rows;
  const times =
    first && last_inserted_at !== null ? `, received ${first.inserted_at} to ${last_inserted_at}` : '';
  return [
    `The files of ${difference.data_interval_start} have ${is_exact ? '' : 'at least '}${counted(missing_rows, 'row')} that the source lacks${times}.`,
    ...(rows.length === 0
      ? []
      : table(
          ['id', 'received'],
          rows.map(({ id, inserted_at }) => [id, inserted_at]),
        )),
    ...(first && rows.length < missing_rows ? [`The first ${rows.length}.`] : []),
    ...(decision === null
      ? []
      : [
          `${decision.decision === 'keep' ? 'Kept' : 'Removed'}: ${counted(decision.rows, 'row')}, by ${decision.by ?? 'a deleted user'} at ${decision.at}: ${decision.reason}`,
        ]),
  ];
}

/** Formats the lag of an export, with the gaps that need a manual retry. */
export function lagLines(lag: BatchExportLag | null): string[] {
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

/** Whether the service, or one of these batch exports, needs attention. */
export const needsAttention = (
  { status, operator_faults }: Readiness,
  exports: readonly BatchExport[],
): boolean =>
  status !== 'ok' ||
  (operator_faults ?? []).length > 0 ||
  exports.some(({ condition }) => condition.severity !== 'ok');

/** The cells of each batch export, the most urgent condition first. Exports that have one outage in common are one row. */
export function statusRows(exports: readonly BatchExport[]): unknown[][] {
  const shared = incidentsOf(exports.map(({ condition }) => condition)).filter((one) => one.exports > 1);
  const isShared = ({ condition }: BatchExport): boolean =>
    shared.some(({ id }) => id === condition.incident?.id);
  const rows = exports
    .filter((one) => !isShared(one))
    .map((one) => ({ cause: one.condition.cause, cells: exportCells(one) }));
  return [...shared.map((incident) => ({ cause: incident.cause, cells: incidentCells(incident) })), ...rows]
    .sort(compareConditions)
    .map(({ cells }) => cells);
}

const incidentCells = ({ severity, cause, summary, ...incident }: SharedIncident): unknown[] => [
  severity,
  cause,
  null,
  counted(incident.exports, 'export'),
  null,
  null,
  null,
  null,
  `${summary} ${concernOf(incident)}.`,
  null,
];

const exportCells = ({ condition, lag, ...one }: BatchExport): unknown[] => [
  condition.severity,
  condition.cause,
  one.id,
  one.name,
  one.model,
  one.interval,
  lag && (lag.intervals === 0 ? 'none' : formatDuration(lag.seconds)),
  lag?.last_completed_interval_end,
  condition.severity === 'ok' ? null : condition.summary,
  condition.coverage?.sentence,
];
