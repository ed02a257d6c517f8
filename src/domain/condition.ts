import type { OpenCircuit } from './circuit.ts';
import { type Coverage, newestRanges } from './coverage.ts';
import type { ErrorOwner } from './errors.ts';
import type { DataInterval } from './intervals.ts';
import { counted, utcTime } from './in_words.ts';

/** How urgent a condition is. `ok` needs no action. */
export const conditionSeverities = ['error', 'warning', 'ok'] as const;
type ConditionSeverity = (typeof conditionSeverities)[number];

interface CauseTraits {
  readonly severity: ConditionSeverity;
  readonly owner: ErrorOwner;
}

/** The causes of a condition, the most urgent first: of several that hold, an export has the first. */
const causes = {
  unreadable: { severity: 'error', owner: 'operator' },
  temporal_unavailable: { severity: 'error', owner: 'operator' },
  no_worker: { severity: 'error', owner: 'operator' },
  source_unavailable: { severity: 'error', owner: 'operator' },
  operator_fault: { severity: 'error', owner: 'operator' },
  destination_unavailable: { severity: 'error', owner: 'tenant' },
  paused_by_failures: { severity: 'error', owner: 'tenant' },
  access_denied: { severity: 'error', owner: 'tenant' },
  table_changed: { severity: 'error', owner: 'tenant' },
  failed: { severity: 'error', owner: 'tenant' },
  held: { severity: 'error', owner: 'tenant' },
  differs: { severity: 'error', owner: 'tenant' },
  not_started: { severity: 'error', owner: 'operator' },
  retrying: { severity: 'warning', owner: 'none' },
  behind: { severity: 'warning', owner: 'none' },
  holes: { severity: 'warning', owner: 'tenant' },
  unsettled: { severity: 'warning', owner: 'operator' },
  paused: { severity: 'ok', owner: 'tenant' },
  ok: { severity: 'ok', owner: 'none' },
} as const satisfies Readonly<Record<string, CauseTraits>>;

/** Why an export is in its condition: a stable code. */
export type ConditionCause = keyof typeof causes;
export const conditionCauses = Object.keys(causes) as readonly ConditionCause[];

/** Orders conditions by urgency, the most urgent first. */
export const compareConditions = (one: Pick<Condition, 'cause'>, other: Pick<Condition, 'cause'>): number =>
  conditionCauses.indexOf(one.cause) - conditionCauses.indexOf(other.cause);

/** An operation of the API that cures a condition, or shows what a person has to decide. */
interface ConditionAction {
  /** A verb: `Retry`. */
  readonly label: string;
  /** `GET`: it changes nothing, and shows what a decision is about. */
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The same on the command line. */
  readonly command: string;
}

/** An outage, from its opening to its end. */
interface Incident {
  readonly id: string;
  /** What is out: `the bucket clicks at s3.example.com`. */
  readonly subject: string;
  /** One sentence: what is out, since when and why. */
  readonly summary: string;
}

/** How an export does, and what to do. */
export interface Condition {
  readonly severity: ConditionSeverity;
  readonly cause: ConditionCause;
  /** One sentence without relative times, so that it changes only with the facts. */
  readonly summary: string;
  /** ISO 8601; null if it is not known, and while all is well. */
  readonly since: string | null;
  /** Who has to act: the owner of the export, the operator of exportd, or `none`. */
  readonly owner: ErrorOwner;
  readonly affected: {
    readonly intervals: number;
    /** The newest of them, newest first; a range may have several. */
    readonly ranges: DataInterval[];
  };
  readonly actions: ConditionAction[];
  /** What all exports of the same outage have: every message about it has the id. Null if it is no outage, and until it is recorded. */
  readonly incident: Incident | null;
  /** What is exported of the time of the export; null if this version cannot read its schedule. */
  readonly coverage: Coverage | null;
}

/** Intervals that have something in common. */
export interface AffectedIntervals {
  readonly intervals: number;
  /** Since when; null if there are none, or if it is not known. */
  readonly since: string | null;
  /** The newest, newest first. `run_id`: their newest run, where they have one. */
  readonly ranges: readonly (DataInterval & { readonly run_id: string | null })[];
}

/** The same with what the newest run of the newest one ended with. */
export interface FailedIntervals extends AffectedIntervals {
  readonly latest_error: string | null;
}

/** A fault that only the operator can fix, and since when. */
interface OpenOperatorFault {
  readonly type: string;
  readonly message: string;
  readonly opened_at: string;
  readonly incident_id: string;
}

/** What the control database knows of an export. Times are ISO 8601. */
export interface ConditionFacts {
  readonly id: string;
  readonly team_id: number;
  readonly now: string;
  /** Length of an interval, in milliseconds. */
  readonly interval_ms: number;
  /** False if this version cannot read the schedule. */
  readonly is_readable: boolean;
  /** Null unless it is paused. */
  readonly pause: {
    readonly at: string | null;
    /** E-mail address of the user; null if it is not known. */
    readonly by: string | null;
    /** Failed runs in a row after which exportd paused it; null if a person did. */
    readonly failed_runs: number | null;
  } | null;
  /** Whether the schedule will create a run by itself. */
  readonly is_scheduled: boolean;
  /** Runs that have not ended. */
  readonly active_runs: number;
  /** Intervals that wait for their run to be created or to end, of the schedule and of backfills. */
  readonly waiting: number;
  /** Ended intervals of the schedule without manifest or held run. `oldest_end`: when the oldest of them ended. */
  readonly missing: { readonly intervals: number; readonly oldest_end: string | null };
  /** When the oldest interval ended that the schedule owes a run; null if it owes none. */
  readonly unstarted_since: string | null;
  /** When any worker has last reported; null if none ever has. */
  readonly worker_seen_at: string | null;
  /** The incident of the absence of workers; null if a server has recorded none. */
  readonly workers_incident: string | null;
  readonly temporal_fault: OpenOperatorFault | null;
  readonly source_fault: OpenOperatorFault | null;
  /** What one of its runs waits for. */
  readonly operator_fault: OpenOperatorFault | null;
  /** `bucket`: its name for people. */
  readonly circuit:
    | (Pick<OpenCircuit, 'error' | 'opened_at'> & { readonly bucket: string; readonly incident_id: string })
    | null;
  /** Intervals whose newest run failed, or was ended by a person. Those of `retrying` have an automatic retry. */
  readonly failed: FailedIntervals & {
    /** Those of them that a person ended, which are retried one by one. */
    readonly ended_by_person: AffectedIntervals;
  };
  readonly retrying: FailedIntervals;
  readonly held: AffectedIntervals;
  /** Intervals whose files differ from the source, by the newest comparison or verification, unless that is kept. */
  readonly differing: AffectedIntervals;
  readonly unsettled: AffectedIntervals;
  /** Why the table of the export is not what exportd made it, as a run or a check found it; null if none did. */
  readonly table_fault: { readonly message: string; readonly found_at: string } | null;
  readonly coverage: Coverage | null;
  /** Intervals between the first and the last exported one that are neither exported nor owed. */
  readonly holes: AffectedIntervals;
}

/** A worker reports every few seconds. After this time it is missed, so that its absence is named within a minute. */
export const workerSilenceMs = 40_000;
/** An interval is late by a tenth of its length and 15 minutes, which cover the settle delay, the jitter and the run. */
const lateMs = (intervalMs: number): number => 0.1 * intervalMs + 15 * 60_000;

/** Errors of the destination that its owner cures with other credentials or permissions. */
const accessErrors =
  /^(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|AllAccessDisabled|AssumeRoleFailed|CredentialsProviderError)\b/;

const none: AffectedIntervals = { intervals: 0, since: null, ranges: [] };

/** Decides the condition of an export. Every surface shows this, and nothing else. */
export function conditionOf(facts: ConditionFacts): Condition {
  const cause = conditionCauses.find((one) => holds(one, facts)) ?? 'ok';
  const affected = affectedBy(cause, facts);
  return {
    ...causes[cause],
    cause,
    summary: summaryOf(cause, facts),
    since: sinceOf(cause, facts),
    affected: {
      intervals: affected.intervals,
      ranges: affected.ranges.map(({ start, end }) => ({ start, end })),
    },
    actions: actionsOf(cause, facts),
    incident: incidentOf(cause, facts),
    coverage: facts.coverage && newestRanges(facts.coverage),
  };
}

/** An outage with what it concerns. */
export interface SharedIncident extends Incident, CauseTraits {
  readonly cause: ConditionCause;
  readonly exports: number;
  /** Intervals of these exports that wait. */
  readonly intervals: number;
}

/** The outages that are the condition of these exports, the most urgent first. */
export function incidentsOf(
  conditions: readonly Pick<Condition, 'severity' | 'owner' | 'cause' | 'incident' | 'affected'>[],
): SharedIncident[] {
  const found = new Map<string, SharedIncident>();
  for (const { severity, owner, cause, incident, affected } of conditions) {
    if (!incident) continue;
    const known = found.get(incident.id) ?? { ...incident, severity, owner, cause, exports: 0, intervals: 0 };
    const { exports, intervals } = known;
    found.set(incident.id, { ...known, exports: exports + 1, intervals: intervals + affected.intervals });
  }
  return [...found.values()].sort(compareConditions);
}

/** How much an outage concerns, or has concerned: `7 exports, 4 intervals wait`. */
export function concernOf(
  { exports, intervals: waiting }: Pick<SharedIncident, 'exports' | 'intervals'>,
  isOver = false,
): string {
  const verb = isOver ? 'waited' : waiting === 1 ? 'waits' : 'wait';
  return `${counted(exports, 'export')}, ${intervals(waiting)} ${verb}`;
}

/** A change of an export, and who made it. */
interface ExportChange {
  readonly at: string;
  readonly by: string;
  /** The name of the API key; null if it is not known. */
  readonly key: string | null;
  /** The paths of the fields, such as `destination.config.endpoint_url`. */
  readonly fields: string[];
}

/** Causes that a change of the destination or of the selection of rows can have. */
const changeable: ReadonlySet<ConditionCause> = new Set([
  'destination_unavailable',
  'paused_by_failures',
  'access_denied',
  'failed',
  'held',
  'differs',
  'retrying',
]);

/** A change this long before a cause began may be why, in milliseconds. */
const suspectMs = 3_600_000;

/** The newest change shortly before the cause of a condition began, if one can be its reason. */
export const suspectOf = (
  { cause, since }: Pick<Condition, 'cause' | 'since'>,
  changes: readonly ExportChange[],
): ExportChange | undefined => {
  if (since === null || !changeable.has(cause)) return undefined;
  const began = Date.parse(since);
  return changes
    .filter(({ at }) => Date.parse(at) <= began && Date.parse(at) >= began - suspectMs)
    .toSorted((one, other) => Date.parse(other.at) - Date.parse(one.at))[0];
};

const ownerNames: Readonly<Record<ErrorOwner, string>> = {
  tenant: 'The owner of the export has to act.',
  operator: 'The operator of exportd has to act.',
  none: 'It ends by itself.',
};

/**
 * The chain from symptom to cause to owner, in words.
 * @param others exports with the same bucket
 */
export function explain(
  { severity, cause, summary, owner }: Condition,
  suspect: ExportChange | undefined,
  others: number,
): string {
  if (severity === 'ok') return summary;
  const change =
    suspect &&
    `${suspect.fields.map(nameOfField).join(', ')} ${suspect.fields.length === 1 ? 'was' : 'were'} changed at ${time(suspect.at)} by ${suspect.by}${suspect.key === null ? '' : ` with the key "${suspect.key}"`}.`;
  const shared =
    sharedCauses.has(cause) && others > 0
      ? `${others.toLocaleString('en')} other export${others === 1 ? ' shares' : 's share'} this bucket.`
      : undefined;
  return [summary, change, shared, ownerNames[owner]].filter((part) => part !== undefined).join(' ');
}

/** Causes of which other exports to the same bucket are likely to have the same. */
const sharedCauses: ReadonlySet<ConditionCause> = new Set(['destination_unavailable', 'access_denied']);

const nameOfField = (path: string): string => path.split('.').at(-1) ?? path;

/** The causes whose begin and end are notified, also while a more urgent cause hides them. */
export const notifiedCauses = [
  'source_unavailable',
  'destination_unavailable',
  'behind',
  'held',
  'differs',
  'holes',
] as const;
export type NotifiedCause = (typeof notifiedCauses)[number];

/** A cause that holds, and is notified. */
export interface OpenCause extends Pick<Condition, 'summary' | 'since' | 'incident'> {
  readonly cause: NotifiedCause;
  /** How many intervals it affects. */
  readonly intervals: number;
}

/** The notified causes that hold of an export. An interval that nothing has started is behind as well. */
export const openCausesOf = (facts: ConditionFacts): OpenCause[] =>
  notifiedCauses.flatMap((cause) => {
    const shown = cause === 'behind' && holds('not_started', facts) ? 'not_started' : cause;
    if (!holds(shown, facts)) return [];
    return {
      cause,
      summary: summaryOf(shown, facts),
      since: sinceOf(shown, facts),
      incident: incidentOf(shown, facts),
      intervals: affectedBy(shown, facts).intervals,
    };
  });

const isLate = (end: string | null, { now, interval_ms }: ConditionFacts): boolean =>
  end !== null && Date.parse(now) - Date.parse(end) > lateMs(interval_ms);

/** Whether an outage keeps something of the export from happening now or at its next run. */
const needsServers = ({ active_runs, waiting, is_scheduled }: ConditionFacts): boolean =>
  is_scheduled || active_runs > 0 || waiting > 0;

function holds(cause: ConditionCause, facts: ConditionFacts): boolean {
  const { pause, failed, worker_seen_at, now } = facts;
  switch (cause) {
    case 'unreadable':
      return !facts.is_readable;
    case 'temporal_unavailable':
      return needsServers(facts) && facts.temporal_fault !== null;
    case 'no_worker':
      return (
        needsServers(facts) &&
        worker_seen_at !== null &&
        Date.parse(now) - Date.parse(worker_seen_at) > workerSilenceMs
      );
    case 'source_unavailable':
      return needsServers(facts) && facts.source_fault !== null;
    case 'operator_fault':
      return facts.operator_fault !== null;
    case 'destination_unavailable':
      return needsServers(facts) && facts.circuit !== null;
    case 'paused_by_failures':
      return pause !== null && pause.failed_runs !== null;
    case 'access_denied':
      return failed.intervals > 0 && accessErrors.test(failed.latest_error ?? '');
    case 'failed':
      return failed.intervals > 0;
    case 'held':
      return facts.held.intervals > 0;
    case 'differs':
      return facts.differing.intervals > 0;
    case 'table_changed':
      return facts.table_fault !== null;
    case 'not_started':
      return pause === null && facts.active_runs === 0 && isLate(facts.unstarted_since, facts);
    case 'retrying':
      return facts.retrying.intervals > 0;
    case 'behind':
      return pause === null && isLate(facts.missing.oldest_end, facts);
    case 'holes':
      return facts.holes.intervals > 0;
    case 'unsettled':
      return facts.unsettled.intervals > 0;
    case 'paused':
      return pause !== null;
    case 'ok':
      return true;
  }
}

/** What a cause concerns. Of outages only the number of waiting intervals is known: they may be any. */
function affectedBy(cause: ConditionCause, facts: ConditionFacts): AffectedIntervals {
  switch (cause) {
    case 'temporal_unavailable':
    case 'no_worker':
    case 'source_unavailable':
    case 'operator_fault':
    case 'destination_unavailable':
      return { ...none, intervals: facts.waiting };
    case 'paused_by_failures':
    case 'access_denied':
    case 'failed':
      return facts.failed;
    case 'retrying':
      return facts.retrying;
    case 'held':
      return facts.held;
    case 'differs':
      return facts.differing;
    case 'holes':
      return facts.holes;
    case 'unsettled':
      return facts.unsettled;
    case 'not_started':
    case 'behind':
    case 'paused':
      return { ...none, intervals: facts.missing.intervals };
    case 'unreadable':
    case 'table_changed':
    case 'ok':
      return none;
  }
}

function sinceOf(cause: ConditionCause, facts: ConditionFacts): string | null {
  switch (cause) {
    case 'temporal_unavailable':
      return facts.temporal_fault?.opened_at ?? null;
    case 'no_worker':
      return facts.worker_seen_at;
    case 'source_unavailable':
      return facts.source_fault?.opened_at ?? null;
    case 'operator_fault':
      return facts.operator_fault?.opened_at ?? null;
    case 'destination_unavailable':
      return facts.circuit?.opened_at ?? null;
    case 'paused_by_failures':
    case 'paused':
      return facts.pause?.at ?? null;
    case 'not_started':
      return facts.unstarted_since;
    case 'behind':
      return facts.missing.oldest_end;
    case 'table_changed':
      return facts.table_fault?.found_at ?? null;
    default:
      return affectedBy(cause, facts).since;
  }
}

const intervals = (count: number): string => counted(count, 'interval');

const time = (at: string | null): string => (at === null ? 'an unknown time' : utcTime(at));

const withoutStop = (sentence: string): string => sentence.replace(/\.$/, '');

const waitingClause = ({ waiting }: ConditionFacts): string =>
  waiting === 0 ? 'The next run will wait.' : `${intervals(waiting)} wait${waiting === 1 ? 's' : ''}.`;

/** What the newest run ended with, as a clause that ends the sentence. */
const errorClause = (error: string | null): string => (error === null ? '.' : `: ${withoutStop(error)}.`);

/** Causes of which one outage concerns several exports. */
type OutageCause =
  | 'no_worker'
  | 'temporal_unavailable'
  | 'source_unavailable'
  | 'operator_fault'
  | 'destination_unavailable';

/** What is out, since when and why: the same for all exports that it concerns. */
function outageSentence(cause: OutageCause, facts: ConditionFacts): string {
  const { worker_seen_at, temporal_fault, source_fault, operator_fault, circuit } = facts;
  const sentence = (message: string | undefined, since: string | undefined): string =>
    `${withoutStop(message ?? '')}, since ${time(since ?? null)}.`;
  switch (cause) {
    case 'no_worker':
      return `No worker of exportd has reported since ${time(worker_seen_at)}.`;
    case 'temporal_unavailable':
      return sentence(temporal_fault?.message, temporal_fault?.opened_at);
    case 'source_unavailable': {
      const message = source_fault?.message ?? '';
      const named = message.startsWith('The source ') ? message : `The source cannot be read: ${message}`;
      return sentence(named, source_fault?.opened_at);
    }
    case 'operator_fault':
      return sentence(`${operator_fault?.type}: ${operator_fault?.message}`, operator_fault?.opened_at);
    case 'destination_unavailable':
      return `The bucket ${circuit?.bucket} does not respond since ${time(circuit?.opened_at ?? null)}: ${withoutStop(circuit?.error ?? '')}.`;
  }
}

/** The incident that a cause is of. */
function incidentOf(cause: ConditionCause, facts: ConditionFacts): Condition['incident'] {
  const of = (outage: OutageCause, id: string | null | undefined, subject: string): Incident | null =>
    id ? { id, subject, summary: outageSentence(outage, facts) } : null;
  switch (cause) {
    case 'no_worker':
      return of(cause, facts.workers_incident, 'the workers');
    case 'temporal_unavailable':
      return of(cause, facts.temporal_fault?.incident_id, 'Temporal');
    case 'source_unavailable':
      return of(cause, facts.source_fault?.incident_id, 'the source');
    case 'operator_fault':
      return of(cause, facts.operator_fault?.incident_id, facts.operator_fault?.type ?? '');
    case 'destination_unavailable':
      return of(cause, facts.circuit?.incident_id, `the bucket ${facts.circuit?.bucket}`);
    default:
      return null;
  }
}

function summaryOf(cause: ConditionCause, facts: ConditionFacts): string {
  const { failed, retrying, held, differing, holes, unsettled, missing, pause } = facts;
  const one = (count: number, singular: string, plural: string): string => (count === 1 ? singular : plural);
  switch (cause) {
    case 'unreadable':
      return 'This version of exportd cannot read the schedule of the export.';
    case 'no_worker':
    case 'temporal_unavailable':
    case 'source_unavailable':
    case 'operator_fault':
    case 'destination_unavailable':
      return `${outageSentence(cause, facts)} ${waitingClause(facts)}`;
    case 'paused_by_failures':
      return `exportd paused the export at ${time(pause?.at ?? null)}, after ${pause?.failed_runs} failed runs in a row${errorClause(failed.latest_error)}`;
    case 'access_denied':
    case 'failed':
      return `${intervals(failed.intervals)} failed and ${one(failed.intervals, 'is', 'are')} not retried automatically${errorClause(failed.latest_error)}`;
    case 'held':
      return `${intervals(held.intervals)} ${one(held.intervals, 'is', 'are')} held, because the source no longer has all rows that were exported.`;
    case 'differs':
      return `The files of ${intervals(differing.intervals)} differ from the source.`;
    case 'table_changed':
      return `The table is not what exportd made it: ${withoutStop(facts.table_fault?.message ?? '')}.`;
    case 'not_started':
      return `${intervals(missing.intervals)} ${one(missing.intervals, 'is', 'are')} late and no run has started: Temporal does not respond, or no worker has taken the task. The oldest ended at ${time(facts.unstarted_since)}.`;
    case 'retrying':
      return `${intervals(retrying.intervals)} failed and ${one(retrying.intervals, 'is', 'are')} retried automatically${errorClause(retrying.latest_error)}`;
    case 'behind':
      return `${intervals(missing.intervals)} ${one(missing.intervals, 'is', 'are')} not exported yet. The oldest ended at ${time(missing.oldest_end)}.`;
    case 'holes':
      return `${intervals(holes.intervals)} between the first and the last exported one ${one(holes.intervals, 'was', 'were')} never exported.`;
    case 'unsettled':
      return `${intervals(unsettled.intervals)} ${one(unsettled.intervals, 'was', 'were')} exported while transactions of the source were open, which may still add rows.`;
    case 'paused':
      return `Paused at ${time(pause?.at ?? null)}${pause?.by ? ` by ${pause.by}` : ''}.`;
    case 'ok':
      return facts.coverage?.sentence ?? '';
  }
}

/** Actions of single intervals are listed for so many. */
const maxActions = 3;

function actionsOf(cause: ConditionCause, facts: ConditionFacts): ConditionAction[] {
  const { id, team_id, failed, held, holes, differing } = facts;
  const project = `/api/projects/${team_id}/batch_exports/`;
  const path = (operation: string): string => `${project}${id}/${operation}/`;
  const retryFailed: ConditionAction = {
    label: 'Retry all failed',
    method: 'POST',
    path: `${project}retry_failed/`,
    body: { batch_export: id },
    command: `exportd export retry ${id} --failed`,
  };
  const unpause = (backfill: boolean): ConditionAction => ({
    label: backfill ? 'Unpause and fill' : 'Unpause',
    method: 'POST',
    path: path('unpause'),
    body: backfill ? { backfill: true } : {},
    command: `exportd export unpause ${id}${backfill ? ' --backfill' : ''}`,
  });
  /** Retries of the newest of these intervals. */
  const retries = ({ ranges }: AffectedIntervals): ConditionAction[] =>
    ranges.slice(0, maxActions).flatMap(({ start, run_id }) =>
      run_id === null
        ? []
        : {
            label: `Retry ${time(start)}`,
            method: 'POST',
            path: path(`runs/${run_id}/retry`),
            body: {},
            command: `exportd export retry ${id} ${run_id}`,
          },
    );
  /** What a person decides about the newest of these intervals. */
  const decisions = ({ ranges }: AffectedIntervals): ConditionAction[] =>
    ranges.slice(0, maxActions).map(({ start }) => ({
      label: `Keep or remove rows of ${time(start)}`,
      method: 'GET',
      path: path(`intervals/${start}/difference`),
      body: {},
      command: `exportd export difference ${id} ${start}`,
    }));
  const retryAll = (): ConditionAction[] => [
    ...(failed.intervals > failed.ended_by_person.intervals ? [retryFailed] : []),
    ...retries(failed.ended_by_person),
  ];
  switch (cause) {
    case 'paused_by_failures':
      return [unpause(true), ...retryAll()];
    case 'paused':
      return [unpause(false), unpause(true)];
    case 'access_denied':
    case 'failed':
      return retryAll();
    case 'held':
      return decisions(held);
    case 'differs':
      return decisions(differing);
    case 'table_changed':
      return [
        {
          label: 'Repair the table',
          method: 'POST',
          path: path('table/repair'),
          body: {},
          command: `exportd table repair ${id}`,
        },
      ];
    case 'holes':
      return holes.ranges.slice(0, maxActions).map(({ start, end }) => ({
        label: `Backfill from ${time(start)}`,
        method: 'POST',
        path: path('backfill'),
        body: { start_at: start, end_at: end },
        command: `exportd export backfill ${id} --start-at ${start} --end-at ${end}`,
      }));
    default:
      return [];
  }
}
