import { DateTime } from 'luxon';
import type { UndecidedRange } from './batch_export.ts';
import type { DataInterval } from './intervals.ts';
import { counted } from './in_words.ts';

/** What an export has done with a time: exported it, not yet though it owes it, or neither. */
export const coverageStates = ['exported', 'owed', 'not_owed'] as const;
type CoverageState = (typeof coverageStates)[number];

/**
 * Why. Exported time has a reason if its newest run failed or is held. What is owed is `due` by the schedule, or by a `backfill`,
 * or was `failed` or `held`. What is not owed precedes the schedule, is what the schedule skipped, or has `expired` in the bucket.
 */
export const coverageReasons = [
  'failed',
  'held',
  'due',
  'backfill',
  'before creation',
  'paused',
  'before start_at',
  'after end_at',
  'expired',
] as const;
export type CoverageReason = (typeof coverageReasons)[number];

/** A range of time of which one thing is true. ISO 8601 in UTC. */
interface CoverageRange {
  /** Null for all time before `end`. */
  readonly start: string | null;
  readonly end: string;
  readonly state: CoverageState;
  readonly reason: CoverageReason | null;
}

/** How far the unfinished backfills of an export are. */
interface BackfillProgress {
  readonly finished: number;
  readonly total: number;
  /** When they are done at the pace so far; null while that is not known, and if all of them are paused. */
  readonly done_at: string | null;
  readonly is_paused: boolean;
}

/** What is exported of the time of an export. */
export interface Coverage {
  /** Adjacent ranges, oldest first, up to the newest ended interval. Each differs from the next. */
  readonly ranges: CoverageRange[];
  /** False if older ranges were left out. Otherwise the first range has no start. */
  readonly is_complete: boolean;
  /** When the interval ends that the schedule exports next; null if it exports none by itself. */
  readonly next_end: string | null;
  readonly backfills: BackfillProgress | null;
  /** The same in words, with times in the export's zone. It changes only with these facts. */
  readonly sentence: string;
}

/** An unfinished backfill. */
interface OpenBackfill {
  /** The part of its range in which it has not created runs yet. */
  readonly remaining: DataInterval | null;
  readonly total: number;
  readonly finished: number;
  readonly is_paused: boolean;
  readonly created_at: string;
  readonly last_updated_at: string;
}

/** An entry of the ledger that is not simply exported, or adjacent ones of a kind. */
export interface LedgerRange extends DataInterval {
  readonly state: CoverageState;
  readonly reason: CoverageReason | null;
}

/** What the ledger and the schedule say of the time of an export. */
export interface CoverageFacts {
  readonly timezone: string;
  /** The end of the newest interval that has ended. */
  readonly until: string;
  /** What the ledger has entries of. Apart from `entries`, they are exported. */
  readonly covered: readonly DataInterval[];
  readonly entries: readonly LedgerRange[];
  /** Exported intervals whose files a rule of the bucket has deleted by now. */
  readonly expired: readonly DataInterval[];
  /** What the schedule has recorded nothing about. */
  readonly undecided: readonly UndecidedRange[];
  readonly backfills: readonly OpenBackfill[];
  /** The entries before this time were left out; null if all are known. */
  readonly known_from: string | null;
  readonly next_end: string | null;
}

/** The same in milliseconds since 1970. */
interface Span extends Pick<CoverageRange, 'state' | 'reason'> {
  readonly start: number;
  readonly end: number;
}

/** Decides what is exported of the time of an export, and what is owed. Every surface shows this. */
export function coverageOf(facts: CoverageFacts): Coverage {
  const spans = spansOf(facts);
  const from = facts.known_from === null ? Number.NEGATIVE_INFINITY : Date.parse(facts.known_from);
  const ranges = spans
    .filter(({ end }) => end > from)
    .map(({ start, end, state, reason }): CoverageRange => {
      const known = Math.max(start, from);
      return {
        start: Number.isFinite(known) ? new Date(known).toISOString() : null,
        end: new Date(end).toISOString(),
        state,
        reason,
      };
    });
  const coverage = {
    ranges,
    is_complete: facts.known_from === null,
    next_end: facts.next_end,
    backfills: progressOf(facts.backfills),
  };
  return { ...coverage, sentence: sentenceOf(coverage, facts.timezone) };
}

/**
 * Puts what is known over what follows from the schedule. A backfill exports what the schedule skipped, and no run has ended
 * without an entry.
 */
function spansOf({ until, covered, entries, expired, undecided, backfills }: CoverageFacts): Span[] {
  const isSkip = ({ state }: LedgerRange): boolean => state === 'not_owed';
  const exported = subtract(
    covered.map((range) => spanOf(range, 'exported', null)),
    entries.map(toSpan),
  );
  const base = {
    start: Number.NEGATIVE_INFINITY,
    end: Date.parse(until),
    state: 'not_owed' as const,
    reason: 'before creation' as const,
  };
  return merge(
    [
      undecided.map((range) =>
        range.reason === null ? spanOf(range, 'owed', 'due') : spanOf(range, 'not_owed', range.reason),
      ),
      entries.filter(isSkip).map(toSpan),
      ...backfills.map(({ remaining }) => (remaining ? [spanOf(remaining, 'owed', 'backfill')] : [])),
      exported,
      entries.filter((entry) => !isSkip(entry)).map(toSpan),
      expired.map((range) => spanOf(range, 'not_owed', 'expired')),
    ].reduce(overlay, [base]),
  );
}

const spanOf = ({ start, end }: DataInterval, state: CoverageState, reason: CoverageReason | null): Span => ({
  start: Date.parse(start),
  end: Date.parse(end),
  state,
  reason,
});

const toSpan = (range: LedgerRange): Span => spanOf(range, range.state, range.reason);

const oldestFirst = (spans: readonly Span[]): Span[] =>
  spans.toSorted((one, other) => one.start - other.start);

/** Puts spans, which do not overlap, over others. */
const overlay = (spans: readonly Span[], over: readonly Span[]): Span[] =>
  over.length === 0 ? [...spans] : oldestFirst([...subtract(spans, over), ...over]);

/** Returns the parts of spans that are in none of the others. Neither overlap among themselves. */
function subtract(spans: readonly Span[], others: readonly Span[]): Span[] {
  const taken = oldestFirst(others);
  const parts: Span[] = [];
  let next = 0;
  for (const span of oldestFirst(spans)) {
    while ((taken[next]?.end ?? Number.POSITIVE_INFINITY) <= span.start) next += 1;
    let { start } = span;
    for (let at = next; start < span.end; at += 1) {
      const other = taken[at];
      if (!other || other.start >= span.end) break;
      if (start < other.start) parts.push({ ...span, start, end: other.start });
      start = Math.max(start, other.end);
    }
    if (start < span.end) parts.push({ ...span, start });
  }
  return parts;
}

/** Joins adjacent spans of which the same is true. */
function merge(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of spans) {
    const last = merged.at(-1);
    if (last && last.state === span.state && last.reason === span.reason && last.end === span.start)
      merged[merged.length - 1] = { ...last, end: span.end };
    else merged.push(span);
  }
  return merged;
}

function progressOf(open: readonly OpenBackfill[]): BackfillProgress | null {
  // Of one whose runs have all ended, only the end is not recorded yet.
  const backfills = open.filter(({ finished, total }) => finished < total);
  if (backfills.length === 0) return null;
  const running = backfills.filter(({ is_paused }) => !is_paused);
  const last = Math.max(...running.map((backfill) => Date.parse(doneAt(backfill) ?? '')));
  return {
    finished: sum(backfills.map(({ finished }) => finished)),
    total: sum(backfills.map(({ total }) => total)),
    done_at: Number.isFinite(last) ? new Date(last).toISOString() : null,
    is_paused: running.length === 0,
  };
}

/** When a backfill is done at the pace so far, ISO 8601. Null before its first run has ended, which is no pace, and at its end. */
export function doneAt({
  finished,
  total,
  created_at,
  last_updated_at,
}: Pick<OpenBackfill, 'finished' | 'total' | 'created_at' | 'last_updated_at'>): string | null {
  if (finished === 0 || finished >= total) return null;
  const start = Date.parse(created_at);
  return new Date(start + ((Date.parse(last_updated_at) - start) * total) / finished).toISOString();
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Ranges that a list of exports has of each. */
const maxListed = 50;

/** The same with fewer ranges, the newest. Its sentence is of all. */
export const newestRanges = (coverage: Coverage): Coverage =>
  coverage.ranges.length <= maxListed
    ? coverage
    : { ...coverage, ranges: coverage.ranges.slice(-maxListed), is_complete: false };

/** How many seconds of the known time are in a state. */
export const secondsOf = ({ ranges }: Pick<Coverage, 'ranges'>, wanted: CoverageState): number =>
  sum(
    ranges.map(({ start, end, state }) =>
      start === null || state !== wanted ? 0 : (Date.parse(end) - Date.parse(start)) / 1_000,
    ),
  );

/**
 * Returns the ranges between the first and the last exported one that are neither exported nor owed, oldest first. What
 * `start_at` and `end_at` exclude is not among them, nor a pause that was ended without a backfill: a person chose it.
 */
export function holesOf({ ranges }: Pick<Coverage, 'ranges'>): DataInterval[] {
  const isExported = ({ state }: CoverageRange): boolean => state === 'exported';
  return ranges
    .slice(ranges.findIndex(isExported), ranges.findLastIndex(isExported) + 1)
    .flatMap(({ start, end, reason }) =>
      start !== null && reason === 'before creation' ? { start, end } : [],
    );
}

/** What the source has of the time before an export. */
export interface SourceBefore {
  /** When it has the first row; null without rows. */
  readonly first_row_at: string | null;
  /** How many rows it has before the time that the export knows of; null if that is not known. */
  readonly rows: number | null;
}

/** A range in a sentence, whose reason may be one of a verification. */
export interface NamedRange extends Pick<CoverageRange, 'start' | 'end' | 'state'> {
  readonly reason: string | null;
  /** Rows of the source, where they were counted. */
  readonly rows?: number;
}

/** Ranges of a kind that a sentence names: the newest. */
const maxNamed = 3;

/**
 * Says what is exported, what is owed, and what is not.
 * @param timezone of the export, in which times are written
 * @param source what was read of the source, if it was
 */
export function sentenceOf(
  {
    ranges,
    is_complete,
    backfills,
    next_end,
  }: Omit<Coverage, 'sentence' | 'ranges'> & { readonly ranges: readonly NamedRange[] },
  timezone: string,
  source?: SourceBefore,
): string {
  const until = ranges.at(-1)?.end ?? next_end ?? '';
  const format = formatterOf(timezone, until);
  const zoned = (time: string): string => `${format(time)} ${timezone}`;
  const exported = joined(ranges.filter(({ state }) => state === 'exported'));
  const expired = joined(ranges.filter(({ reason }) => reason === 'expired'));
  const owed = joined(
    ranges.filter(({ state, reason }) => state === 'owed' && (reason !== 'backfill' || backfills === null)),
  );
  const span = ({ start, end }: DataInterval): string => `${format(start)} – ${format(end)}`;
  const named = (found: readonly DataInterval[]): string => listOf(found, span, is_complete);
  const hasExported = exported.length > 0;
  const hasExpired = expired.length > 0;
  const sentences = [
    hasExported && `Exported ${named(exported)} ${timezone}.`,
    hasExpired && `Expired in the bucket: ${named(expired)}${hasExported ? '' : ` ${timezone}`}.`,
    !hasExported &&
      !hasExpired &&
      nothingExported(owed.length > 0 || backfills !== null ? null : next_end, zoned),
    owed.length > 0 && `Owed: ${named(owed)}${hasExported || hasExpired ? '' : ` ${timezone}`}.`,
    backfills && progressSentence(backfills, format),
    notOwedSentence(ranges, { until, format, is_complete, source }),
  ];
  return sentences.filter((sentence) => typeof sentence === 'string').join(' ');
}

const nothingExported = (next_end: string | null, zoned: (time: string) => string): string =>
  next_end === null
    ? 'Nothing is exported yet.'
    : `Nothing is exported yet; the first interval ends ${zoned(next_end)}.`;

function progressSentence(
  { finished, total, done_at, is_paused }: BackfillProgress,
  format: (time: string) => string,
): string {
  const done = `${count(finished)} of ${count(total)}`;
  if (is_paused) return `Backfill: ${done}, paused.`;
  return done_at === null ? `Backfill: ${done}.` : `Backfill: ${done}, done about ${format(done_at)}.`;
}

const count = (value: number): string => value.toLocaleString('en');

interface SentenceContext {
  readonly until: string;
  readonly format: (time: string) => string;
  readonly is_complete: boolean;
  readonly source: SourceBefore | undefined;
}

/** What is neither exported nor owed, and why. What goes on has no end. */
function notOwedSentence(
  ranges: readonly NamedRange[],
  { until, format, is_complete, source }: SentenceContext,
): string | null {
  const parts = ranges.flatMap(({ start, end, state, reason, rows = null }): (() => string)[] => {
    if (state !== 'not_owed' || reason === null || reason === 'expired') return [];
    if (start === null) return beforeSentence(end, format, source);
    const goesOn = end === until && reason !== 'before creation';
    const timeOf = (): string => (goesOn ? `since ${format(start)}` : `${format(start)} – ${format(end)}`);
    return [() => `${timeOf()}${quantityOf(rows)}, ${reasonInWords(reason)}`];
  });
  return parts.length === 0
    ? null
    : `Not exported: ${listOf(parts, (textOf) => textOf(), is_complete, '; ')}.`;
}

const notOwedReasons: Readonly<Record<string, string>> = {
  'before creation': 'before the export was created',
  paused: 'while it was paused',
};

/** Why a time is not owed, as the end of a sentence. */
export const reasonInWords = (reason: string | null): string => notOwedReasons[reason ?? ''] ?? reason ?? '';

const quantityOf = (rows: number | null): string => (rows === null ? '' : `, ${counted(rows, 'row')}`);

/** What is before all that is known: of the source, if it was read. */
function beforeSentence(
  end: string,
  format: (time: string) => string,
  source: SourceBefore | undefined,
): (() => string)[] {
  const reason = reasonInWords('before creation');
  if (!source) return [() => `anything before ${format(end)}, ${reason}`];
  const { first_row_at, rows } = source;
  if (first_row_at === null || Date.parse(first_row_at) >= Date.parse(end)) return [];
  return [() => `${format(first_row_at)} – ${format(end)}${quantityOf(rows)}, ${reason}`];
}

/** Joins adjacent ranges, whatever their reason. */
function joined(ranges: readonly NamedRange[]): DataInterval[] {
  const found: DataInterval[] = [];
  for (const { start, end } of ranges) {
    if (start === null) continue;
    const last = found.at(-1);
    if (last?.end === start) found[found.length - 1] = { start: last.start, end };
    else found.push({ start, end });
  }
  return found;
}

/** The newest parts of a list, and that there are older ones, which are not written: there may be hundreds. */
function listOf<Part>(
  parts: readonly Part[],
  textOf: (part: Part) => string,
  isComplete: boolean,
  separator = ', ',
): string {
  const older = parts.length - maxNamed;
  const shown = parts.slice(-maxNamed).map(textOf);
  if (older > 0) shown.unshift(`${count(older)}${isComplete ? '' : ' or more'} older ranges`);
  return shown.join(separator);
}

/** Formats times to the minute: with the year if it is another than that of `until`, with the offset if clocks show it twice. */
function formatterOf(timezone: string, until: string): (time: string) => string {
  const zone = { zone: timezone, locale: 'en' };
  const newest = DateTime.fromISO(until, zone);
  return (time) => {
    const local = DateTime.fromISO(time, zone);
    const year = local.year === newest.year ? '' : ' yyyy';
    const offset = local.getPossibleOffsets().length > 1 ? ' ZZ' : '';
    return local.toFormat(`d LLL${year} HH:mm${offset}`);
  };
}
