/** What the Temporal UI shows of a workflow: a summary of one line, and details in Markdown, which people of the console read. */
import { DateTime } from 'luxon';
import type { Settings } from '../../config/settings.ts';
import { codeOf, escapeMarkdown, type Fact, toMarkdown } from '../../contract/markdown.ts';
import { type DescribedExport, factsOf, intervalText } from '../../decisions/described_export.ts';
import type { StartableRun } from '../../decisions/startable_runs.ts';

/** Options of the start of a workflow. Temporal allows 400 bytes of JSON for the summary and 20,000 for the details. */
export interface UserMetadata {
  readonly staticSummary: string;
  readonly staticDetails: string;
}

export type ConsoleSettings = Pick<Settings, 'EXPORTD_BASE_URL'>;

/** This many bytes of JSON of a summary are for the name. */
const maxNameBytes = 200;
/** Characters of a place in a summary, such as a bucket with its prefix. */
export const maxLocationLength = 100;

/** Summarizes a run: `events of "Shop", 2026-11-01 10:00–11:00`, in UTC. */
export const runSummary = (
  run: Pick<StartableRun, 'model' | 'batch_export_name' | 'data_interval_start' | 'data_interval_end'>,
): string =>
  `${run.model} of "${truncate(run.batch_export_name)}", ${rangeText(run.data_interval_start, run.data_interval_end, 'UTC')}`;

/** Describes a run, and why the reconciler started it. */
export const runMetadata = (
  run: StartableRun,
  settings: ConsoleSettings,
  reason: string | undefined,
): UserMetadata => {
  const { batch_export_id: id, data_interval_start: start, data_interval_end: end, timezone } = run;
  const interval = `${rangeText(start, end, timezone)} ${timezone}`;
  const ofExport = exportLink({ id, name: run.batch_export_name }, settings);
  return {
    staticSummary: withReason(runSummary(run), reason),
    staticDetails: details(`This run exports one interval of ${ofExport}.`, reason, [
      ['Interval', link(interval, `/exports/${id}/intervals/${encodeURIComponent(start)}`, settings)],
      ['Rows', `${escapeMarkdown(run.model)}, ${intervalText(run.interval)}`],
      ['Destination', codeOf(run.destination_uri)],
      [
        'Started by',
        run.backfill_id === null
          ? 'the schedule'
          : `${link('a backfill', `/exports/${id}?tab=backfills`, settings)} ${codeOf(run.backfill_id)}`,
      ],
      ['Run', codeOf(run.run_id)],
    ]),
  };
};

/** Describes the schedule of an export, which may be unknown, and why the reconciler started it. */
export const scheduleMetadata = (
  described: DescribedExport | undefined,
  settings: ConsoleSettings,
  reason: string | undefined,
): UserMetadata => {
  if (!described)
    return {
      staticSummary: withReason('Schedule of a batch export', reason),
      staticDetails: details('The schedule of a batch export that exportd does not know.', reason, []),
    };
  return {
    staticSummary: withReason(
      `Schedule of "${truncate(described.name)}", ${intervalText(described.interval)}${described.destination_uri === null ? '' : ` to ${described.destination_uri.slice(0, maxLocationLength)}`}`,
      reason,
    ),
    staticDetails: details(
      `The schedule of ${exportLink(described, settings)} starts a run for each interval that has ended, and applies commands such as pause and backfill. The current details say what is true now.`,
      reason,
      factsOf(described),
    ),
  };
};

/** A backfill as the Temporal UI describes it. */
interface DescribedBackfill {
  readonly id: string;
  /** Its time, both in ISO 8601. */
  readonly start_at: string;
  readonly end_at: string;
}

/** Describes a backfill of an export, and why the reconciler started it. */
export const backfillMetadata = (
  backfill: DescribedBackfill,
  described: DescribedExport,
  settings: ConsoleSettings,
  reason: string | undefined,
): UserMetadata => {
  const { id, name, timezone } = described;
  const rangeIn = (zone: string): string => rangeText(backfill.start_at, backfill.end_at, zone);
  const range = `${rangeIn(timezone)} ${timezone}`;
  return {
    staticSummary: withReason(`Backfill of "${truncate(name)}", ${rangeIn('UTC')}`, reason),
    staticDetails: details(
      `This backfill exports intervals of ${exportLink(described, settings)} that a person or a repair has requested, a few at a time.`,
      reason,
      [
        ['Time', link(range, `/exports/${id}?tab=backfills`, settings)],
        ...factsOf(described),
        ['Backfill', codeOf(backfill.id)],
      ],
    ),
  };
};

/** Describes a job: what a person asked, of an export if `name` is known. */
export const jobMetadata = (
  job: {
    readonly id: string;
    readonly summary: string;
    readonly target: string;
    readonly name: string | null;
    readonly parameters: object;
  },
  settings: ConsoleSettings,
): UserMetadata => {
  const { id, summary, target, name, parameters } = job;
  return {
    staticSummary: name === null ? summary : `${summary} of "${truncate(name)}"`,
    staticDetails: details(
      `${escapeMarkdown(summary)}${name === null ? '' : ` of ${exportLink({ id: target, name }, settings)}`}. A person has asked for it. The answer is in the control database, not here.`,
      undefined,
      [
        ...(name === null ? [['For', codeOf(target)] as const] : []),
        ...Object.entries(parameters).flatMap(([field, value]: [string, unknown]): Fact[] =>
          typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number'
            ? [[escapeMarkdown(field), codeOf(String(value).slice(0, maxLocationLength))]]
            : [],
        ),
        ['Job', codeOf(id)],
      ],
    ),
  };
};

/** Describes a background query. */
export const queryMetadata = (
  { id, team_id }: { readonly id: string; readonly team_id: number },
  settings: ConsoleSettings,
): UserMetadata => ({
  staticSummary: `Query of project ${team_id}`,
  staticDetails: details(
    'A query runs in the background. Its text, rows and errors are in the control database, not here.',
    undefined,
    [
      ['Project', String(team_id)],
      ['Query', codeOf(id)],
      [
        'Result',
        link('the API returns it', `/api/projects/${team_id}/query/${encodeURIComponent(id)}/`, settings),
      ],
    ],
  ),
});

/** Describes the maintenance of a deployment. */
export const maintenanceMetadata = (): UserMetadata => ({
  staticSummary: 'Deletes obsolete objects and compares exported intervals with the source',
  staticDetails: details(
    'The maintenance of all exports of this deployment. Each minute it starts what is due: it deletes replaced files, compares exported intervals with the source, and completes intervals that did not settle. The current details name what fails.',
    undefined,
    [],
  ),
});

/** Details in Markdown: a sentence, why the reconciler started the execution, and facts. */
export const details = (sentence: string, reason: string | undefined, facts: readonly Fact[]): string =>
  toMarkdown(
    [sentence, ...(reason === undefined ? [] : [`Started by the reconciler: ${escapeMarkdown(reason)}`])],
    facts,
  );

/** Adds to a summary why the reconciler started the execution. */
const withReason = (summary: string, reason: string | undefined): string =>
  reason === undefined ? summary : `${summary}. Started by the reconciler: ${reason}`;

/** `2026-11-01 10:00–11:00`, or with the day of the end if it is another one. */
function rangeText(start: string, end: string, timezone: string): string {
  const [startDay = '', startTime = ''] = dayAndTime(start, timezone);
  const [endDay = '', endTime = ''] = dayAndTime(end, timezone);
  return `${startDay} ${startTime}–${startDay === endDay ? endTime : `${endDay} ${endTime}`}`;
}

const dayAndTime = (time: string, timezone: string): string[] => {
  const local = DateTime.fromISO(time, { zone: timezone });
  return [local.toFormat('yyyy-MM-dd'), local.toFormat('HH:mm')];
};

export const exportLink = (
  { id, name }: Pick<DescribedExport, 'id' | 'name'>,
  settings: ConsoleSettings,
): string => link(`**${escapeMarkdown(name)}**`, `/exports/${id}`, settings);

/** A link to a page of the console or of the API, if its address is known; else its text. */
export const link = (markdown: string, path: string, { EXPORTD_BASE_URL }: ConsoleSettings): string =>
  EXPORTD_BASE_URL === undefined ? markdown : `[${markdown}](${EXPORTD_BASE_URL.replace(/\/+$/, '')}${path})`;

/** Truncates a name between two characters, without control characters, which JSON escapes with six bytes. */
export function truncate(name: string): string {
  let truncated = '';
  let bytes = 0;
  for (const character of name.replace(/\p{C}/gu, ' ')) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes > maxNameBytes) return `${truncated}…`;
    truncated += character;
  }
  return truncated;
}
