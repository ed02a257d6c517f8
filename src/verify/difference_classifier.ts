import type { Difference } from './compare_rows.ts';
import type { RejectedRows } from './rejected_rows.ts';
import type { PersonState } from './source_rows.ts';
import type { FindingCollector } from './finding_collector.ts';

/** Decides which differences between a manifest and the source are errors. */
export interface DifferenceClassifier {
  add(difference: Difference): Promise<void>;
  /** Call it after the last difference. */
  finish(): Promise<void>;
}

/** For events every difference is an error, except rejected rows. */
export function createEventClassifier(
  collector: FindingCollector,
  rejected: RejectedRows,
): DifferenceClassifier {
  return {
    add: (difference) => {
      const { kind, row } = difference;
      if (kind === 'mismatched') collector.row(kind, row.id, difference.columns);
      else if (kind !== 'missing' || !rejected.take(row.id)) collector.row(kind, row.id);
      return Promise.resolve();
    },
    finish: () => Promise.resolve(),
  };
}

/** Number of distinct ids per statement. */
const batchSize = 5_000;

/**
 * Persons are mutable: a state that the source no longer has is correct if the source has a newer one. Repeated
 * distinct ids are found elsewhere, because their states have different keys.
 */
export function createPersonClassifier(
  collector: FindingCollector,
  rejected: RejectedRows,
  statesOf: (distinctIds: readonly string[]) => Promise<ReadonlyMap<string, PersonState>>,
): DifferenceClassifier {
  let undecided: Difference[] = [];
  const decide = async () => {
    const keyedDifferences = undecided;
    undecided = [];
    const states = await statesOf([...new Set(keyedDifferences.map(({ row }) => row.id))]);
    for (const { kind, row } of keyedDifferences) {
      const state = states.get(row.id);
      if (kind === 'unexpected' && state && state.inserted_at >= row.inserted_at) continue;
      // A state that was replaced meanwhile belongs to a later interval now.
      if (kind === 'missing' && state?.inserted_at !== row.inserted_at) continue;
      collector.row(kind, row.id);
      if (kind === 'missing' && !state?.hasPerson)
        collector.hint(
          kind,
          'Some belong to persons whose rows were deleted from the source, which exports cannot detect.',
        );
    }
  };
  return {
    async add(difference) {
      const { kind, row } = difference;
      if (kind === 'mismatched') collector.row(kind, row.id, difference.columns);
      else if (kind === 'unexpected' || (kind === 'missing' && !rejected.take(row.id)))
        undecided.push(difference);
      if (undecided.length >= batchSize) await decide();
    },
    finish: decide,
  };
}
