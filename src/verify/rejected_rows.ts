import { DestinationError } from '../destination/destination.ts';
import type { Manifest } from '../destination/manifest.ts';
import type { FileReadContext } from './checked_files.ts';
import { readFieldTexts } from './files/json_lines.ts';
import { formatCrc32 } from '../encoding/encoder.ts';
import { measureChunks, type Measure } from './files/read_rows.ts';
import { FileUnreadable } from './row.ts';

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
    else {
      const measure: Measure = { bytes: 0, crc: 0 };
      try {
        for await (const id of readFieldTexts(measureChunks(object.chunks, measure), 'id')) {
          ids.set(id, (ids.get(id) ?? 0) + 1);
          count += 1;
        }
        if (measure.bytes !== file.bytes || formatCrc32(measure.crc) !== file.crc32)
          collector.add('file_changed', name, 'The size or CRC-32 of the object differs from the manifest.');
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
  if (rejected === 1) collector.note('1 row was rejected, because the format cannot represent it.');
  if (rejected > 1)
    collector.note(`${rejected} rows were rejected, because the format cannot represent them.`);
  return {
    count: rejected,
    take(id) {
      const left = ids.get(id) ?? 0;
      if (left > 0) ids.set(id, left - 1);
      return left > 0;
    },
  };
}
