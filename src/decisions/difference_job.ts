import { bounds } from '../config/bounds.ts';
import type { DecidedDifference } from '../domain/difference.ts';
import type { SortKey } from '../domain/sort_key.ts';
import type { JobKind } from '../jobs/jobs.ts';

export interface DifferenceParameters {
  /** The run of the current manifest. */
  readonly run_id: string;
  /** The start of the interval. */
  readonly start: string;
}

/** How the files of an interval differ from the source now. */
export interface Difference {
  /** Rows that only the files have. */
  readonly missing_rows: number;
  /** Whether they were compared by key. Otherwise at least as many are missing. */
  readonly is_exact: boolean;
  /** The first of them by insertion time, if they were compared by key. */
  readonly rows: readonly SortKey[];
  /** The insertion time of the last one. */
  readonly last_inserted_at: string | null;
}

/** What a person decides about the difference of an interval. */
export interface DecisionParameters
  extends DifferenceParameters, Pick<DecidedDifference, 'decision' | 'reason'> {
  /** The end of the interval. */
  readonly end: string;
  /** The number of rows that the person expects; null for any. */
  readonly rows: number | null;
}

/** How many rows were decided about. */
export type DecidedRows = Pick<DecidedDifference, 'rows'>;

const names = { difference: 'difference', decision: 'difference_decision' };
/** Both compare an interval by key. Their target is the export. */
const comparing = {
  limit: { kinds: Object.values(names), max: bounds.differences.max },
  attempts: 3,
  timeoutMs: () => 10 * 60_000,
};

/** Finds the rows of an interval that its files have and the source lacks. */
export const differenceJob: JobKind<DifferenceParameters, Difference> = {
  ...comparing,
  name: names.difference,
  workflowType: 'batchExportDifference',
  summary: 'Difference of an interval',
  // All requests about the interval while it is compared get the same answer.
  isKept: true,
};

/** Finds them, and keeps or removes them. */
export const differenceDecisionJob: JobKind<DecisionParameters, DecidedRows> = {
  ...comparing,
  name: names.decision,
  workflowType: 'batchExportDifferenceDecision',
  summary: 'Decision about the difference of an interval',
  isKept: false,
};
