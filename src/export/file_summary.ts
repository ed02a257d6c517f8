import type { CompletedFile, PlannedPart } from '../domain/run.ts';
import { combineCrc32 } from '../encoding/crc32_combine.ts';

/** The figures of a file, from the parts that it is joined of. */
export function summarizeParts(key: string, parts: readonly PlannedPart[]): CompletedFile {
  const rowed = parts.filter(({ first }) => first !== null);
  const crc = parts.reduce((sum, part) => combineCrc32(sum, Number.parseInt(part.crc32, 16), part.bytes), 0);
  return {
    key,
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    rejected: parts.reduce((sum, { rejected }) => sum + rejected, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    crc32: formatCrc32(crc),
    first: rowed.at(0)?.first ?? null,
    last: rowed.at(-1)?.last ?? null,
  };
}

/** A CRC-32 as it is written in journal and manifest: eight hexadecimal digits. */
export const formatCrc32 = (checksum: number): string => checksum.toString(16).padStart(8, '0');
