import { type Coverage, newestRanges } from './coverage.ts';
import type { ErrorOwner } from './errors.ts';
import type { DataInterval } from './intervals.ts';
import { counted } from './in_words.ts';
import { actionsOf, type ConditionAction } from './condition_actions.ts';
import {
  causes,
  type CauseTraits,
  type ConditionCause,
  conditionCauses,
  type ConditionSeverity,
} from './condition_causes.ts';
import { type AffectedIntervals, type ConditionFacts, workerSilenceMs } from './condition_facts.ts';
import { intervals, type OutageCause, outageSentence, summaryOf, time } from './condition_summary.ts';

/** Orders conditions by urgency, the most urgent first. */
export const compareConditions = (one: Pick<Condition, 'cause'>, other: Pick<Condition, 'cause'>): number =>
  conditionCauses.indexOf(one.cause) - conditionCauses.indexOf(other.cause);

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

/** Why an export is behind, the most telling first. */
const behindCauses = ['not_started', 'behind_capacity', 'behind'] as const;

/** The notified causes that hold of an export. An interval that nothing has started is behind as well. */
export const openCausesOf = (facts: ConditionFacts): OpenCause[] =>
  notifiedCauses.flatMap((cause) => {
    const isBehind = cause === 'behind' && holds(cause, facts);
    const shown = isBehind ? (behindCauses.find((one) => holds(one, facts)) ?? cause) : cause;
    if (!holds(shown, facts)) return [];
    return {
      cause,
      summary: summaryOf(shown, facts),
      since: sinceOf(shown, facts),
      incident: incidentOf(shown, facts),
      intervals: affectedBy(shown, facts).intervals,
    };
  });

const isLate = (
  end: string | null,
  { now, interval_ms }: ConditionFacts,
  afterMs = lateMs(interval_ms),
): boolean => end !== null && Date.parse(now) - Date.parse(end) > afterMs;

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
      return facts.target_fault !== null;
    case 'not_started':
      return pause === null && facts.active_runs === 0 && isLate(facts.unstarted_since, facts);
    case 'retrying':
      return facts.retrying.intervals > 0;
    case 'behind_capacity': {
      // Once the next interval has ended too, it is not only the run of this one that takes its time.
      const afterMs = Math.min(facts.interval_ms, lateMs(facts.interval_ms));
      const isWaiting = facts.taken_slots !== null || facts.taken_turns !== null;
      return pause === null && isWaiting && isLate(facts.missing.oldest_end, facts, afterMs);
    }
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
    case 'behind_capacity':
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
    case 'behind_capacity':
    case 'behind':
      return facts.missing.oldest_end;
    case 'table_changed':
      return facts.target_fault?.found_at ?? null;
    default:
      return affectedBy(cause, facts).since;
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
