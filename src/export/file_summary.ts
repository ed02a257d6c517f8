import { addFingerprints } from '../domain/fingerprint.ts';
import type { CompletedFile, PlannedPart } from '../domain/run.ts';
import { combineCrc32 } from '../encoding/crc32_combine.ts';
import { formatCrc32 } from '../encoding/format_crc32.ts';

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
