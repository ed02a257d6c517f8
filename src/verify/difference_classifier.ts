import type { Difference } from './compare_rows.ts';
import type { RejectedRows } from './rejected_rows.ts';
import type { PersonState } from './source_rows.ts';
import type { FindingCollector } from './finding_collector.ts';

/** Decides what of the differences between a manifest and the source is wrong. */
export interface DifferenceClassifier {
  add(difference: Difference): Promise<void>;
  /** To be called after the last difference. */
  finish(): Promise<void>;
}

/** Of events every difference is wrong, unless the format could not hold the row. */
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

/** Distinct ids that are looked up in one statement. */
const batchSize = 5_000;

/**
 * Persons are mutable: a state in a file that the source has no more is as it should be when the source has a newer
 * one. That a distinct id is in a manifest twice is found elsewhere, since its states have different keys.
 */
export function createPersonClassifier(
  collector: FindingCollector,
  rejected: RejectedRows,
  statesOf: (distinctIds: readonly string[]) => Promise<ReadonlyMap<string, PersonState>>,
): DifferenceClassifier {
  let doubtful: Difference[] = [];
  const decide = async () => {
    const differences = doubtful;
    doubtful = [];
    const states = await statesOf([...new Set(differences.map(({ row }) => row.id))]);
    for (const { kind, row } of differences) {
      const state = states.get(row.id);
      if (kind === 'unexpected' && state && state.inserted_at >= row.inserted_at) continue;
      // A state that was replaced while it was compared is now in a later interval.
      if (kind === 'missing' && state?.inserted_at !== row.inserted_at) continue;
      collector.row(kind, row.id);
      if (kind === 'missing' && !state?.hasPerson)
        collector.hint(
          kind,
          'Some belong to persons that were deleted from the source outright, which no export can see.',
        );
    }
  };
  return {
    async add(difference) {
      const { kind, row } = difference;
      if (kind === 'mismatched') collector.row(kind, row.id, difference.columns);
      else if (kind === 'unexpected' || (kind === 'missing' && !rejected.take(row.id)))
        doubtful.push(difference);
      if (doubtful.length >= batchSize) await decide();
    },
    finish: decide,
  };
}
