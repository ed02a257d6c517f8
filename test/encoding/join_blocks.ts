import { brotliDecompressSync, gunzipSync, type ZstdOptions, zstdDecompressSync } from 'node:zlib';
import type { EncodedBlock, FileEncoder } from '../../src/encoding/encoder.ts';

/** Joins blocks to a file. */
export async function joinBlocks(encoder: FileEncoder, blocks: readonly EncodedBlock[]): Promise<Buffer> {
  const assembly = encoder.assemble([]);
  const chunks: Buffer[] = [];
  for (const block of blocks) chunks.push(await assembly.append(block));
  chunks.push(await assembly.finish());
  assembly.close();
  return Buffer.concat(chunks);
}

/** Decompresses a file. */
export function decompress(file: Buffer, compression: string | null): Buffer {
  switch (compression) {
    case 'gzip':
      return gunzipSync(file);
    case 'zstd':
      return decompressFrames(file);
    case 'brotli':
      return brotliDecompressSync(file);
    default:
      return file;
  }
}

/** Decompresses all frames; Node's decoder stops after the first. */
function decompressFrames(file: Buffer): Buffer {
  const texts: Buffer[] = [];
  for (let at = 0; at < file.length;) {
    const { buffer, engine } = zstdDecompressSync(file.subarray(at), {
      info: true,
    } as ZstdOptions) as unknown as {
      buffer: Buffer;
      engine: { bytesWritten: number };
    };
    texts.push(buffer);
    at += engine.bytesWritten;
  }
  return Buffer.concat(texts);
}
