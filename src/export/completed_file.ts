/** A file whose parts have all arrived. */
import type { FileUpload } from '../destination/destination.ts';
import type { CompletedFile, PlannedPart } from '../domain/exported_files.ts';
import { addFingerprints } from '../domain/fingerprint.ts';
import { combineCrc32, formatCrc32 } from '../encoding/compression.ts';

/** Completes an upload, which makes its object visible. */
export async function completeFile(
  upload: FileUpload,
  planned: readonly PlannedPart[],
  etags: ReadonlyMap<number, string>,
  signal: AbortSignal,
): Promise<CompletedFile> {
  const file = summarizeParts(upload.key, planned);
  const parts = planned.map(({ part_number }) => ({ part_number, etag: etags.get(part_number) ?? '' }));
  return { ...file, ...(await upload.complete(parts, file.bytes, signal)) };
}

/**
 * The totals of a file: its rows, size, checksum and key range, computed from its parts.
 * @throws RangeError without parts
 */
export function summarizeParts(
  key: string,
  parts: readonly PlannedPart[],
): Omit<CompletedFile, 'expires_at'> {
  const [firstPart, ...furtherParts] = parts.map(({ fingerprint }) => fingerprint);
  if (!firstPart) throw new RangeError('A file has at least one part.');
  const withRows = parts.filter(({ first }) => first !== null);
  const crc = parts.reduce((sum, part) => combineCrc32(sum, Number.parseInt(part.crc32, 16), part.bytes), 0);
  return {
    key,
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    fingerprint: addFingerprints(firstPart, ...furtherParts),
    rejected: parts.reduce((sum, { rejected }) => sum + rejected, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    crc32: formatCrc32(crc),
    first: withRows.at(0)?.first ?? null,
    last: withRows.at(-1)?.last ?? null,
  };
}
