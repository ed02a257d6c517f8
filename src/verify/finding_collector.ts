import type { DataInterval } from '../domain/intervals.ts';
import type { Finding, FindingKind, NamedRow, Note } from './report.ts';

/** Maximum number of rows that a finding names. Further rows are only counted. */
const maxNamedRows = 20;

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
  row(kind: RowKind, id: string, columns?: readonly string[]): void;
  /** Adds a possible reason to the findings of a kind. */
  hint(kind: RowKind, sentence: string): void;
  add(kind: FindingKind, object: string, detail: string, count?: number): void;
  note(detail: string): void;
  /** Notes that the bucket's own rules deleted objects of the interval. Rows are then missing for that reason. */
  expired(detail: string): void;
  findings(): Finding[];
  notes(): Note[];
}

/** Creates an empty collector. @param manifest the full name of the manifest */
export function createFindingCollector(interval: DataInterval, manifest: string): FindingCollector {
  const { start, end } = interval;
  const findings: Finding[] = [];
  const notes: Note[] = [];
  const expiredObjects: Note[] = [];
  const rows = new Map<RowKind, { count: number; named: NamedRow[]; hints: Set<string> }>();
  const rowsOf = (kind: RowKind) => {
    const known = rows.get(kind) ?? { count: 0, named: [], hints: new Set<string>() };
    rows.set(kind, known);
    return known;
  };
  return {
    row(kind, id, columns) {
      const known = rowsOf(kind);
      known.count += 1;
      for (const named of columns?.map((column) => ({ id, column })) ?? [{ id }])
        if (known.named.length < maxNamedRows) known.named.push(named);
    },
    hint: (kind, sentence) => void rowsOf(kind).hints.add(sentence),
    add: (kind, object, detail, count = 1) =>
      void findings.push({ kind, start, end, object, count, rows: [], detail }),
    note: (detail) => void notes.push({ start, end, reason: null, intervals: 0, detail }),
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
      ...rowKinds.flatMap((kind) => {
        const { count, named, hints } = rowsOf(kind);
        if (count === 0 || (kind === 'missing' && expiredObjects.length > 0)) return [];
        const detail = [
          `${formatRowCount(count)} ${descriptions[kind][count === 1 ? 0 : 1]}.`,
          ...hints,
        ].join(' ');
        return [{ kind, start, end, object: manifest, count, rows: named, detail }];
      }),
    ],
    notes: () => [...notes, ...expiredObjects],
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
