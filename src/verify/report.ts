import { safeText } from '../config/bounds.ts';
import { bucketWidthMs, encodeBuckets } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { encodeHashes } from '../domain/kept_rows.ts';
import type { RowKey } from '../readers/row.ts';
import type { NotOwedReason } from './owed_time.ts';
import { bucketOf, hashOfId } from './row_fingerprint.ts';

/** The problems that verifying can find. */
export type FindingKind =
  /** Intervals that the export owes and no manifest covers. */
  | 'gap'
  /** Rows of the source in the requested time that the export does not owe. */
  | 'not_exported'
  /** A manifest whose fingerprint differs from that of the source. */
  | 'fingerprint'
  /** Time that two manifests cover. */
  | 'overlap'
  | 'manifest_unreadable'
  /** A manifest whose name contradicts its content. */
  | 'manifest_misnamed'
  /** A manifest of a run that the journal does not have. */
  | 'manifest_unknown'
  /** A manifest whose sums differ from its files, or whose files are not sorted by key. */
  | 'manifest_inconsistent'
  | 'file_missing'
  /** An object whose size or CRC-32 differs from its manifest. */
  | 'file_changed'
  /** An object that cannot be decoded. */
  | 'file_unreadable'
  /** An object whose number of rows differs from its manifest. */
  | 'file_rows'
  /** An object whose rows differ from its fingerprint in the manifest. */
  | 'file_fingerprint'
  /** Rows that are not sorted by key, or are outside the key range in the manifest. */
  | 'file_order'
  /** An object that two manifests reference. */
  | 'file_shared'
  /** A table whose log cannot be read, or lacks versions. */
  | 'table_unreadable'
  /** A version of the table that another writer has replaced. */
  | 'table_overwritten'
  /** A file of a manifest that the table does not have. */
  | 'table_missing'
  /** A file of the table that no manifest lists. */
  | 'table_unexpected'
  /** A file of the table that does not exist. */
  | 'table_file_missing'
  /** Rows of the source that are in no file. */
  | 'missing'
  /** Rows that occur twice in a manifest, or in two manifests. */
  | 'duplicate'
  /** Rows of a file that are not in the source; they may have been deleted since. */
  | 'unexpected'
  /** Rows whose values differ from the source. */
  | 'mismatched';

/** A row, identified by the uuid of an event or the distinct_id of a person. */
export interface NamedRow {
  readonly id: string;
  /** The column of a mismatched row, never its values. */
  readonly column?: string;
}

/** A problem. */
export interface Finding {
  readonly kind: FindingKind;
  /** The affected time, ISO 8601; null if none. */
  readonly start: string | null;
  readonly end: string | null;
  /** The full name of the affected manifest or file. */
  readonly object: string | null;
  /** The number of affected rows or objects. */
  readonly count: number;
  /** Some of the affected rows. */
  readonly rows: readonly NamedRow[];
  /** A sentence for people. */
  readonly detail: string;
  /** Which rows, as `Findings` know them, or as their number and the sum of the hashes of their ids; of kinds of rows alone. */
  readonly ids?: string;
  /** Whether they are exactly those that a person has kept; absent where rows are not known by their fingerprint. */
  readonly is_kept?: boolean;
}

/** Why intervals without a manifest, or without some of its files, are no problem. */
export type NoteReason = NotOwedReason | 'expired';

/** Information that is not a problem. */
export interface Note {
  readonly start: string | null;
  readonly end: string | null;
  /** Null for a remark that excuses nothing. */
  readonly reason: NoteReason | null;
  /** The number of intervals that the reason applies to; 0 without a reason. */
  readonly intervals: number;
  readonly detail: string;
}

/** The summary of one manifest. */
export interface IntervalReport {
  readonly start: string;
  readonly end: string;
  readonly manifest: string;
  readonly model: string;
  readonly generation: number;
  readonly settled: boolean;
  readonly files: number;
  /** Files of earlier generations that the manifest still names. */
  readonly earlier_files: number;
  /** Rows that were read; with `fast`, those that the manifest states. */
  readonly rows: number;
  readonly bytes: number;
  /** Current rows of the interval in the source; null when they were not compared. */
  readonly source_rows: number | null;
  readonly rejected: number;
  readonly findings: number;
}

/** What is exported of the time. */
export interface CoveredTime {
  /** That of the condition; of the requested time, if it has both ends. */
  readonly sentence: string;
  /** The requested time up to the newest ended interval; null without both ends. */
  readonly span:
    | (DataInterval & {
        readonly source_rows: number;
        /** The parts that no manifest covers. */
        readonly not_exported: readonly (DataInterval & { readonly rows: number; readonly reason: string })[];
      })
    | null;
}

/** The result of verifying an export. */
export interface VerificationReport {
  /** Whether there are no findings. */
  readonly ok: boolean;
  readonly batch_export_id: string;
  /** Whether all values were compared, or only the presence of rows. */
  readonly deep: boolean;
  /** Whether only fingerprints were compared, without reading files. */
  readonly fast: boolean;
  readonly from: string | null;
  readonly to: string | null;
  readonly totals: {
    readonly manifests: number;
    readonly files: number;
    readonly rows: number;
    readonly bytes: number;
    readonly rejected: number;
    readonly missing: number;
    readonly duplicate: number;
    readonly unexpected: number;
    readonly mismatched: number;
    readonly gaps: number;
    /** Intervals that are not exported yet. */
    readonly pending: number;
    /** Intervals of which the bucket's own rules deleted objects. */
    readonly expired: number;
  };
  /** Null of a deleted export, and if this version cannot read its schedule. */
  readonly coverage: CoveredTime | null;
  readonly intervals: readonly IntervalReport[];
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
}

/** Verifying is not possible: the export does not exist, or something that it needs cannot be read. */
export class CannotVerify extends Error {
  override readonly name = 'CannotVerify';
}

/** Maximum number of rows that a finding names. Further rows are only counted. */
const maxNamedRows = 20;
/** Maximum number of rows that a finding knows one by one. Memory holds the findings of all manifests. */
const maxListedRows = 1_000;
/** Maximum number of findings of a kind, and of notes. Further ones are only counted. */
const maxItems = 100;

const rowKinds = [
  'missing',
  'duplicate',
  'unexpected',
  'mismatched',
] as const satisfies readonly FindingKind[];
type RowKind = (typeof rowKinds)[number];

/** Collects the findings and notes of one manifest. */
export interface FindingCollector {
  /** Counts a row, and names it up to the limit. `columns` are those of a mismatched row. */
  row(kind: RowKind, row: RowKey, columns?: readonly string[]): void;
  /** The unexpected rows by bucket; undefined without one, and if one is not of the interval, or has no time. */
  unexpected(): string | undefined;
  /** Notes whether the unexpected rows are exactly those that a person has kept. */
  setKept(isKept: boolean): void;
  /** Adds a possible reason to the findings of a kind. */
  hint(kind: RowKind, sentence: string): void;
  add(kind: FindingKind, object: string, detail: string, count?: number): void;
  note(detail: string): void;
  /** Notes that the bucket's own rules deleted objects of the interval. Rows are then missing for that reason. */
  expired(detail: string): void;
  findings(): Finding[];
  notes(): Note[];
}

/** Rows of a kind. */
interface FoundRows {
  count: number;
  sum: bigint;
  /** Of those whose time is in the interval, up to `maxListedRows`. */
  readonly hashes: bigint[];
  readonly named: NamedRow[];
  readonly hints: Set<string>;
}

/** Creates an empty collector. @param manifest the full name of the manifest */
export function createFindingCollector(interval: DataInterval, manifest: string): FindingCollector {
  const { start, end } = interval;
  const findings: Finding[] = [];
  const unlisted = new Map<FindingKind, number>();
  const notes: Note[] = [];
  const expiredObjects: Note[] = [];
  const rows = new Map<RowKind, FoundRows>();
  const rowsOf = (kind: RowKind): FoundRows => {
    const known: FoundRows = rows.get(kind) ?? { count: 0, sum: 0n, hashes: [], named: [], hints: new Set() };
    rows.set(kind, known);
    return known;
  };
  const isInside = isInsideOf(interval);
  const unexpected = createBuckets(interval);
  let isKept: boolean | undefined;
  return {
    row(kind, { inserted_at, id }, columns) {
      const known = rowsOf(kind);
      const hash = hashOfId(id);
      known.count += 1;
      known.sum += hash;
      // Rows without keys are not the same in each check, and an id does not say which row it is at another time.
      if (isInside(inserted_at) && known.hashes.length < maxListedRows) known.hashes.push(hash);
      if (kind === 'unexpected') unexpected.add(inserted_at, hash);
      if (known.named.length >= maxNamedRows) return;
      const safeId = safeText(id);
      for (const named of columns?.map((column) => ({ id: safeId, column })) ?? [{ id: safeId }])
        if (known.named.length < maxNamedRows) known.named.push(named);
    },
    unexpected: () => unexpected.encoded(),
    setKept(value) {
      isKept = value;
    },
    hint: (kind, sentence) => void rowsOf(kind).hints.add(sentence),
    add: (kind, object, detail, count = 1) => {
      const { length } = findings.filter((finding) => finding.kind === kind);
      if (length >= maxItems) unlisted.set(kind, (unlisted.get(kind) ?? 0) + count);
      else
        findings.push({
          kind,
          start,
          end,
          count,
          rows: [],
          object: safeText(object),
          detail: safeText(detail),
        });
    },
    note: (detail) => {
      if (notes.length < maxItems)
        notes.push({ start, end, reason: null, intervals: 0, detail: safeText(detail) });
    },
    expired: (detail) =>
      void expiredObjects.push({
        start,
        end,
        reason: 'expired',
        intervals: expiredObjects.length === 0 ? 1 : 0,
        detail,
      }),
    findings: () => [
      ...findings,
      ...[...unlisted].map(([kind, count]) => ({
        kind,
        start,
        end,
        object: manifest,
        count,
        rows: [],
        detail: `${count} more of this kind are not listed.`,
      })),
      ...rowKinds.flatMap((kind) => {
        const { count, sum, hashes, named, hints } = rowsOf(kind);
        if (count === 0 || (kind === 'missing' && expiredObjects.length > 0)) return [];
        const detail = [
          `${formatRowCount(count)} ${descriptions[kind][count === 1 ? 0 : 1]}.`,
          ...hints,
        ].join(' ');
        const known = hashes.length === count ? encodeHashes(hashes) : null;
        const ids = known === null ? `${count}/${BigInt.asUintN(64, sum)}` : `#${known}`;
        const found = { kind, start, end, object: manifest, count, rows: named, detail, ids };
        return [{ ...found, ...(kind === 'unexpected' && isKept !== undefined && { is_kept: isKept }) }];
      }),
    ],
    notes: () => [...notes, ...expiredObjects],
  };
}

/** Whether an interval contains a time; none that is empty. */
function isInsideOf(interval: DataInterval): (time: string) => boolean {
  const [start, end] = [Date.parse(interval.start), Date.parse(interval.end)];
  return (time) => Date.parse(time) >= start && Date.parse(time) < end;
}

/** Adds up hashes by bucket of the fingerprint of an interval. */
function createBuckets(interval: DataInterval) {
  const width_ms = bucketWidthMs(interval);
  const isInside = isInsideOf(interval);
  const sums = new Map<number, { rows: number; sum: bigint }>();
  let allInside = true;
  return {
    add(time: string, hash: bigint): void {
      if (!isInside(time)) {
        allInside = false;
        return;
      }
      const index = bucketOf(time, interval, { width_ms });
      const { rows, sum } = sums.get(index) ?? { rows: 0, sum: 0n };
      sums.set(index, { rows: rows + 1, sum: sum + hash });
    },
    /** Undefined without a row, and if one was outside of the interval, or has no time. */
    encoded: (): string | undefined =>
      allInside && sums.size > 0
        ? encodeBuckets([...sums].map(([index, { rows, sum }]) => ({ index, rows, sum: sum.toString() })))
        : undefined,
  };
}

const formatRowCount = (count: number): string => (count === 1 ? '1 row' : `${count} rows`);

const descriptions: Readonly<Record<RowKind, readonly [string, string]>> = {
  missing: ['of the source is missing in the files', 'of the source are missing in the files'],
  duplicate: ['exists more than once', 'exist more than once'],
  unexpected: [
    'is in a file but not in the source; it may have been deleted or changed there since',
    'are in a file but not in the source; they may have been deleted or changed there since',
  ],
  mismatched: ['differs from the source', 'differ from the source'],
};
