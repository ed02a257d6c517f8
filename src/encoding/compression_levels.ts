import type { ParquetCompression, TextCompression } from './encoder.ts';

/** The levels of a compression: from the fastest to the smallest, and the one that is used by default. */
export interface CompressionLevels {
  readonly lowest: number;
  readonly highest: number;
  readonly usual: number;
}

type Compression = TextCompression | ParquetCompression;
type CompressionWithLevels = 'gzip' | 'zstd' | 'brotli';

const levels: Readonly<Record<CompressionWithLevels, CompressionLevels>> = {
  gzip: { lowest: 1, highest: 9, usual: 5 },
  // Files of higher levels need more memory than readers allow by default.
  zstd: { lowest: 1, highest: 19, usual: 1 },
  brotli: { lowest: 0, highest: 11, usual: 4 },
};

const hasLevels = (compression: Compression): compression is CompressionWithLevels => compression in levels;

/** The levels of a compression; null when it has none. */
export const levelsOf = (compression: Compression): CompressionLevels | null =>
  hasLevels(compression) ? levels[compression] : null;

/** The given level, or the usual one of the compression. */
export const levelOf = (compression: CompressionWithLevels, given: number | null | undefined): number =>
  given ?? levels[compression].usual;

/** The name of a compression with its level, as the identity of an encoder contains it: `gzip-5`, `snappy`. */
export const nameWithLevel = (compression: Compression, given: number | null | undefined): string =>
  hasLevels(compression) ? `${compression}-${levelOf(compression, given)}` : compression;
