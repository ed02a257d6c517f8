import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** How a response may be compressed. */
export type Encoding = 'br' | 'gzip' | 'identity';

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);

/** A file that is compressed once, when it is first requested. */
export interface CompressedFile {
  encode(encoding: Encoding): Promise<Buffer>;
}

/** Keeps each compressed form of a file. */
export function createCompressedFile(content: Buffer): CompressedFile {
  const encoded = new Map<Encoding, Promise<Buffer>>([['identity', Promise.resolve(content)]]);
  return {
    encode: (encoding) => {
      const known = encoded.get(encoding);
      if (known) return known;
      const compressed = encoding === 'br' ? toBrotli(content) : compressGzip(content, { level: 9 });
      encoded.set(encoding, compressed);
      return compressed;
    },
  };
}

// The best quality takes thirty times as long and saves a twentieth.
const toBrotli = (content: Buffer): Promise<Buffer> =>
  compressBrotli(content, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: content.length },
  });

/** The smallest encoding that a request accepts. A quality of zero excludes one. */
export function acceptedEncoding(header: string | readonly string[] | undefined): Encoding {
  const accepted = new Set(
    [header ?? '']
      .flat()
      .join(',')
      .split(',')
      .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
      .map((part) => part.split(';', 1)[0]?.trim().toLowerCase()),
  );
  if (accepted.has('br')) return 'br';
  return accepted.has('gzip') ? 'gzip' : 'identity';
}
