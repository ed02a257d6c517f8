import {
  type Coverage,
  type CoverageReason,
  type NamedRange,
  reasonInWords,
  sentenceOf,
} from '../domain/coverage.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { readStandings } from '../projections/export_conditions.ts';
import { sortIntervals, type TimeRange } from './gaps.ts';
import { currentRange, type RangeContext } from './locations.ts';
import { intersect, subtract } from './owed_time.ts';
import type { CoveredTime, Finding } from './report.ts';
import type { SourceRows } from './source_rows.ts';

/** Dependencies for comparing a time with its manifests. */
interface CoverageContext extends RangeContext {
  readonly source: Pick<SourceRows, 'count'>;
}

/** What is exported of a time, and the rows of the source that are not. */
interface FoundCoverage {
  /** Null of a deleted export, and if this version cannot read its schedule. */
  readonly coverage: CoveredTime | null;
  readonly findings: readonly Finding[];
}

/**
 * Says what is exported. Of a range with both ends it counts the rows of the source over the whole of it, and those of each part
 * that no manifest covers: a person who asks for a month wants to know whether it is complete, whatever the export owes. The ledger
 * says why a part is not exported, never that it is.
 */
export async function findCoverage(
  context: CoverageContext,
  pool: Pool,
  covered: readonly DataInterval[],
  { from, to }: TimeRange,
): Promise<FoundCoverage> {
  const { batch_export_id: id } = context.definition;
  const standing = (await readStandings(pool, [id], () => undefined)).get(id);
  const coverage = standing?.coverage;
  if (!standing || !coverage) return { coverage: null, findings: [] };
  const { timezone } = standing.state.definition;
  const until = coverage.ranges.at(-1)?.end ?? standing.now;
  const span = from !== null && to !== null && { start: from, end: to < until ? to : until };
  if (!span || span.start >= span.end)
    return { coverage: { sentence: coverage.sentence, span: null }, findings: [] };
  const count = async (time: DataInterval): Promise<number> =>
    context.source.count(await currentRange(context, time));
  const named: (NamedRange & DataInterval)[] = intersect([span], covered).map((time) => ({
    ...time,
    state: 'exported',
    reason: null,
  }));
  const parts = partsOf(coverage, subtract([span], covered));
  const not_exported: (DataInterval & { rows: number; reason: string })[] = [];
  for (const part of parts) {
    const rows = await count(part);
    const { start, end, reason } = part;
    // What the ledger takes for exported has lost its manifest.
    const state = part.state === 'not_owed' ? 'not_owed' : 'owed';
    named.push({ start, end, state, reason, rows });
    not_exported.push({ start, end, rows, reason: reason ?? 'no manifest' });
  }
  const ranges = sortIntervals(named);
  const sentence = sentenceOf(
    { ...coverage, ranges, is_complete: true, backfills: null, next_end: null },
    timezone,
  );
  return {
    coverage: { sentence, span: { ...span, source_rows: await count(span), not_exported } },
    findings: ranges.flatMap(({ start, end, state, reason, rows = 0 }) =>
      state === 'not_owed' && reason !== 'expired' && rows > 0
        ? {
            kind: 'not_exported',
            start,
            end,
            object: null,
            count: rows,
            rows: [],
            detail: `The source has ${rows} rows in this time, which the export does not owe: ${reasonInWords(reason)}.`,
          }
        : [],
    ),
  };
}

/** What the ledger says of times without a manifest. */
const partsOf = (
  { ranges }: Coverage,
  absent: readonly DataInterval[],
): (DataInterval & { readonly state: NamedRange['state']; readonly reason: CoverageReason | null })[] =>
  absent.flatMap((time) =>
    ranges.flatMap(({ start, end, state, reason }) =>
      intersect([time], [{ start: start ?? time.start, end }]).map((part) => ({ ...part, state, reason })),
    ),
  );
