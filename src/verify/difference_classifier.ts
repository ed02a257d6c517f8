import { bounds, boundText } from '../config/bounds.ts';
import { DestinationError } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import type { FileReadContext } from './checked_files.ts';
import type { Difference } from './compare_rows.ts';
import { readRejectedKeys } from '../readers/foreign_rows.ts';
import { type Measure, measureChunks } from '../readers/read_rows.ts';
import type { FindingCollector } from './report.ts';
import { FileUnreadable } from '../readers/row.ts';
import type { PersonState } from './source_rows.ts';

/** The rejected rows of a manifest. */
export interface RejectedRows {
  readonly count: number;
  /** Whether a row with this id was rejected. Each rejected row is returned once. */
  take(id: string): boolean;
}

/** Reads the ids of the rejected rows into memory. Problems of the file are reported to the collector. */
export async function readRejectedRows(
  { reader, collector, signal, isExpired }: FileReadContext,
  { rejected, rejected_file: file }: Manifest,
): Promise<RejectedRows> {
  const ids = new Map<string, number>();
  let count = 0;
  if (file) {
    const name = reader.nameOf(file.key);
    const object = await reader.open(file.key, signal);
    if (!object && (await isExpired(file.key)))
      collector.expired(`Expired: a lifecycle rule of the bucket deleted ${name}.`);
    else if (!object)
      collector.add('file_missing', name, `The object with ${file.rows} rejected rows does not exist.`);
    else if (object.bytes !== file.bytes || object.bytes > bounds.rejectedFile.max) {
      // Not read: its ids are kept in memory, and exportd wrote no more.
      object.close();
      collector.add(
        'file_changed',
        name,
        `The object has ${object.bytes} bytes, expected ${file.bytes} and at most ${boundText(bounds.rejectedFile)}. It was not read.`,
      );
    } else {
      const measure: Measure = { bytes: 0, crc: 0 };
      try {
        const chunks = measureChunks(object.chunks, measure);
        for await (const { id } of readRejectedKeys({ foreign: reader.foreign, signal }, chunks)) {
          ids.set(id, (ids.get(id) ?? 0) + 1);
          count += 1;
        }
        if (formatCrc32(measure.crc) !== file.crc32)
          collector.add('file_changed', name, 'The CRC-32 of the object differs from the manifest.');
        if (count !== file.rows)
          collector.add('file_rows', name, `The object has ${count} rejected rows, expected ${file.rows}.`);
      } catch (error) {
        if (
          !(error instanceof FileUnreadable) &&
          !(error instanceof DestinationError && error.type === 'ObjectReplaced')
        )
          throw error;
        collector.add(
          'file_unreadable',
          name,
          `The object with the rejected rows cannot be read: ${error.message}.`,
        );
      }
    }
  }
  if (rejected === 1) collector.note('1 row was rejected; its line in the file of rejected rows says why.');
  if (rejected > 1)
    collector.note(`${rejected} rows were rejected; their lines in the file of rejected rows say why.`);
  return {
    count: rejected,
    take(id) {
      const left = ids.get(id) ?? 0;
      if (left > 0) ids.set(id, left - 1);
      return left > 0;
    },
  };
}

/** Decides which differences between a manifest and the source are errors. */
interface DifferenceClassifier {
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
      if (kind === 'mismatched') collector.row(kind, row, difference.columns);
      else if (kind !== 'missing' || !rejected.take(row.id)) collector.row(kind, row);
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
      collector.row(kind, row);
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
      if (kind === 'mismatched') collector.row(kind, row, difference.columns);
      else if (kind === 'unexpected' || (kind === 'missing' && !rejected.take(row.id)))
        undecided.push(difference);
      if (undecided.length >= batchSize) await decide();
    },
    finish: decide,
  };
}
