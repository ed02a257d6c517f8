import { hash } from 'node:crypto';
import type { Findings, StoredDecision } from '../domain/difference.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { type TimeRange } from './gaps.ts';
import type { Finding, FindingKind, Note } from './report.ts';
import { addSums, type BucketSums, sumsOf } from './row_fingerprint.ts';

/** What people have decided to keep as it is, by interval. */
export type KeptDifferences = ReadonlyMap<string, StoredDecision>;

const keyOf = ({ start, end }: DataInterval): string => `${start} ${end}`;

/** Reads what is kept of the intervals of an export that overlap a range. */
export async function readKeptDifferences(
  pool: Pool,
  batchExportId: string,
  { from, to }: TimeRange,
): Promise<KeptDifferences> {
  const { rows } = await pool.query<DataInterval & { readonly decision: StoredDecision }>(
    `select data_interval_start as start, data_interval_end as "end", decision from exportd.intervals
     where batch_export_id = $1 and decision->>'decision' = 'keep'
       and ($2::timestamptz is null or data_interval_end > $2) and ($3::timestamptz is null or data_interval_start < $3)`,
    [batchExportId, from, to],
  );
  return new Map(
    rows.map(({ start, end, decision }) => [
      keyOf({ start: new Date(start).toISOString(), end: new Date(end).toISOString() }),
      decision,
    ]),
  );
}

/** What is kept of an interval. */
export const keptOf = (kept: KeptDifferences, interval: DataInterval): StoredDecision | undefined =>
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
 * Whether a decision is about all that was found of a kind. Rows that the source lacks are compared by bucket, as it may have
 * some of them again. Others, such as those of files without keys, are known as a whole.
 */
function isDecided(
  kind: FindingKind,
  found: readonly Finding[],
  { findings, missing }: StoredDecision,
): boolean {
  const unexpected = found.flatMap(({ encoded_buckets }) =>
    encoded_buckets === undefined ? [] : [{ encoded_buckets }],
  );
  if (!missing || unexpected.length < found.length) return findings[kind] === identityOf(found);
  return arePartOf(addSums(...unexpected.map(sumsOf)), sumsOf(missing));
}

/**
 * Whether rows are a part of others. A sum does not tell which rows make it: in a bucket to which more kept rows came back
 * than others have left it, those others pass for kept ones.
 */
const arePartOf = (some: BucketSums, all: BucketSums): boolean =>
  [...some].every(([index, { rows, sum }]) => {
    const known = all.get(index);
    return known !== undefined && (rows < known.rows || (rows === known.rows && sum === known.sum));
  });
