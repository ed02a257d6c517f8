import { DestinationError } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { FileReading } from './checked_files.ts';
import { readMemberTexts } from './files/json_lines.ts';
import { formatCrc32 } from '../encoding/format_crc32.ts';
import { measuring, type Measure } from './files/read_rows.ts';
import { FileUnreadable } from './row.ts';

/** The rows of a manifest that its format could not hold. */
export interface RejectedRows {
  readonly count: number;
  /** Whether a row of this id was rejected; each rejected row answers once. */
  take(id: string): boolean;
}

/** Reads the ids of the rejected rows, all into memory; whatever is wrong with their file is tallied. */
export async function readRejectedRows(
  { reader, collector, signal }: FileReading,
  { rejected, rejected_file: file }: Manifest,
): Promise<RejectedRows> {
  const ids = new Map<string, number>();
  let count = 0;
  if (file) {
    const name = reader.nameOf(file.key);
    const object = await reader.open(file.key, signal);
    if (!object)
      collector.add('file_missing', name, `The object with the ${file.rows} rejected rows is not there.`);
    else {
      const measure: Measure = { bytes: 0, crc: 0 };
      try {
        for await (const id of readMemberTexts(measuring(object.chunks, measure), 'id')) {
          ids.set(id, (ids.get(id) ?? 0) + 1);
          count += 1;
        }
        if (measure.bytes !== file.bytes || formatCrc32(measure.crc) !== file.crc32)
          collector.add(
            'file_changed',
            name,
            'The object has not the bytes and the CRC-32 that the manifest gives it.',
          );
        if (count !== file.rows)
          collector.add(
            'file_rows',
            name,
            `The object has ${count} rejected rows; the manifest says ${file.rows}.`,
          );
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
  if (rejected === 1) collector.note('1 row was rejected, since the format cannot hold it.');
  if (rejected > 1) collector.note(`${rejected} rows were rejected, since the format cannot hold them.`);
  return {
    count: rejected,
    take(id) {
      const left = ids.get(id) ?? 0;
      if (left > 0) ids.set(id, left - 1);
      return left > 0;
    },
  };
}
