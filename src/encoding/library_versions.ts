import type { ParquetCompression, TextCompression } from './encoder.ts';

/** The libraries of Node whose version determines the compressed bytes. The others are dependencies of exportd. */
const libraries: Readonly<Partial<Record<TextCompression | ParquetCompression, 'zlib' | 'zstd' | 'brotli'>>> =
  { gzip: 'zlib', zstd: 'zstd', brotli: 'brotli' };

/** The end of an encoder's identity: the library of its compression with the version, if it uses one. */
export function libraryVersion(compression: TextCompression | ParquetCompression | null): string {
  const library = compression === null ? undefined : libraries[compression];
  return library === undefined ? '' : ` ${library}/${process.versions[library] ?? 'unknown'}`;
}
