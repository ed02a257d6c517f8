import { hash } from 'node:crypto';
import type { Findings, StoredDecision } from '../domain/difference.ts';
import { areComparable, bucketIntervals, type Fingerprint, haveSameRows } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { decodeHashes, keptRows } from '../domain/kept_rows.ts';
import type { Pool } from '../journal/database.ts';
import type { RowRange } from '../source/source.ts';
import { type TimeRange } from './gaps.ts';
import type { Finding, FindingCollector, FindingKind, Note } from './report.ts';
import { bucketOf, hashOfId } from './row_fingerprint.ts';
import type { SourceRows } from './source_rows.ts';

/** What people have decided to keep as it is, by interval. */
export type KeptDifferences = ReadonlyMap<string, KeptDifference>;

/** A decision to keep rows. Their hashes are read when they are needed. */
export interface KeptDifference extends Omit<StoredDecision, 'missing_hashes'> {
  readonly readHashes: () => Promise<string | null>;
}

const keyOf = ({ start, end }: DataInterval): string => `${start} ${end}`;

/** Reads what is kept of the intervals of an export that overlap a range. */
export async function readKeptDifferences(
  pool: Pool,
  batchExportId: string,
  { from, to }: TimeRange,
): Promise<KeptDifferences> {
  const { rows } = await pool.query<KeptRow>(
    `select data_interval_start as start, data_interval_end as "end", decision - 'missing_hashes' as decision
     from exportd.intervals
     where batch_export_id = $1 and decision->>'decision' = 'keep'
       and ($2::timestamptz is null or data_interval_end > $2) and ($3::timestamptz is null or data_interval_start < $3)`,
    [batchExportId, from, to],
  );
  return new Map(
    rows.map(({ start, end, decision }) => {
      const interval = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
      return [
        keyOf(interval),
        { ...decision, readHashes: () => readHashes(pool, batchExportId, interval, decision) },
      ] as const;
    }),
  );
}

interface KeptRow extends DataInterval {
  readonly decision: Omit<StoredDecision, 'missing_hashes'>;
}

/** The hashes of the rows of a decision, unless another one has followed. */
async function readHashes(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
  { at }: Pick<StoredDecision, 'at'>,
): Promise<string | null> {
  const { rows } = await pool.query<{ hashes: string | null }>(
    `select decision->>'missing_hashes' as hashes from exportd.intervals
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3 and decision->>'at' = $4`,
    [batchExportId, start, end, at],
  );
  return rows[0]?.hashes ?? null;
}

/** What is kept of an interval. */
const keptOf = (kept: KeptDifferences, interval: DataInterval): KeptDifference | undefined =>
  kept.get(keyOf(interval));

/** What was found, by kind. Equal texts are of the same rows or objects. */
export const identitiesOf = (findings: readonly Finding[]): Findings =>
  Object.fromEntries(
    [...Map.groupBy(findings, ({ kind }) => kind)].map(([kind, found]) => [kind, identityOf(found)]),
  );

const identityOf = (found: readonly Finding[]): string =>
  found.every(({ ids }) => ids !== undefined)
    ? found.map(({ ids }) => ids).join(' ')
    : hash('sha1', JSON.stringify(found.map(({ object, count, detail }) => [object, count, detail])));

/** Splits findings into those that are reported and notes about those that people have decided to keep as they are. */
export function splitKept(
  findings: readonly Finding[],
  kept: KeptDifferences,
): { readonly findings: readonly Finding[]; readonly notes: readonly Note[] } {
  if (kept.size === 0) return { findings, notes: [] };
  const keptFindings = new Set<Finding>();
  const notes: Note[] = [];
  const ofIntervals = Map.groupBy(findings, ({ start, end }) => `${start} ${end}`);
  for (const [interval, decision] of kept)
    for (const [kind, found] of Map.groupBy(ofIntervals.get(interval) ?? [], (finding) => finding.kind)) {
      if (!isDecided(kind, found, decision)) continue;
      for (const finding of found) {
        keptFindings.add(finding);
        notes.push({
          start: finding.start,
          end: finding.end,
          reason: null,
          intervals: 0,
          detail: `Kept at ${decision.at}: ${finding.detail} Reason: ${decision.reason}`,
        });
      }
    }
  return { findings: findings.filter((finding) => !keptFindings.has(finding)), notes };
}

/**
 * Whether a decision is about all that was found of a kind. What is not known by fingerprints, such as persons, was found before
 * the decision too.
 */
const isDecided = (kind: FindingKind, found: readonly Finding[], { findings }: KeptDifference): boolean =>
  found.every(({ is_kept }) => is_kept === true) ||
  (found.every(({ is_kept }) => is_kept !== false) && wasFound(identityOf(found), findings[kind]));

/** Whether all that was found now was found before. What is not known one by one has to be the same. */
function wasFound(now: string, before: string | undefined): boolean {
  if (before === undefined || now === before) return now === before;
  const [rows, known] = [hashesIn(now), hashesIn(before)];
  if (!rows || !known) return false;
  const left = new Map<bigint, number>();
  for (const one of known) left.set(one, (left.get(one) ?? 0) + 1);
  return rows.every((one) => {
    const count = left.get(one) ?? 0;
    left.set(one, count - 1);
    return count > 0;
  });
}

/** The hashes of the rows that a text is of; undefined if they are not known one by one. */
function hashesIn(identity: string): bigint[] | undefined {
  const lists = identity.split(' ');
  return lists.every((list) => list.startsWith('#'))
    ? lists.flatMap((list) => decodeHashes(list.slice(1)))
    : undefined;
}

/** What finding kept rows requires. */
interface KeptRowsContext {
  readonly source: Pick<SourceRows, 'rows'>;
  readonly kept: KeptDifferences;
}

/** The kept rows of events that the source still lacks; null if no rows were kept, or their fingerprint is not known. */
export async function findKeptRows(
  { source, kept }: KeptRowsContext,
  range: RowRange,
  rows: { readonly files: Fingerprint; readonly source: Fingerprint },
): Promise<Fingerprint | null> {
  const decision = keptOf(kept, range.interval);
  if (!decision?.missing) return null;
  return keptRows(decision.missing, rows, {
    hashes: decision.readHashes,
    sourceRows: async function* sourceRows(indexes) {
      for (const interval of bucketIntervals(range.interval, rows.files, indexes))
        for await (const { inserted_at, id } of source.rows(
          { ...range, interval },
          { id: 'uuid', columns: [] },
        ))
          yield { index: bucketOf(inserted_at, range.interval, rows.files), hash: hashOfId(id) };
    },
  });
}

/**
 * Notes whether the unexpected rows of a manifest are exactly those that a person has kept and the source still lacks.
 * @param fingerprint that of the manifest
 */
export async function noteKeptRows(
  context: KeptRowsContext,
  range: RowRange,
  fingerprint: Fingerprint,
  collector: Pick<FindingCollector, 'unexpected' | 'setKept'>,
): Promise<void> {
  const unexpected = collector.unexpected();
  if (unexpected === undefined) return;
  const files = { ...fingerprint, encoded_buckets: unexpected };
  const kept = await findKeptRows(context, range, { files, source: { ...files, encoded_buckets: '' } });
  if (!kept || !areComparable(files, kept)) return;
  const isKept = haveSameRows(files, kept);
  // Where persons decide which events are selected, the source was compared as a whole: these are only some of the rows.
  if (isKept || !fingerprint.all_events) collector.setKept(isKept);
}
