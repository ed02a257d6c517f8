import type { EncodedBlock, EncoderState, FileAssembly } from './encoder.ts';
import { emptyText, joinTexts, textStateOf } from './text_state.ts';

/** What a compression puts around the blocks of a text. */
export interface Framing {
  readonly header: Buffer;
  readonly trailer: (text: { crc32: number; length: number }) => Buffer;
}

/** Text as it is. */
export const plainFraming: Framing = { header: Buffer.alloc(0), trailer: () => Buffer.alloc(0) };

/** One gzip member, so that every reader takes the file: header, deflate blocks, an empty final block, CRC, length. */
export const gzipFraming: Framing = {
  // No name and no time, so that the same rows make the same file; 255: an unknown system.
  header: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
  trailer: ({ crc32, length }) => {
    const bytes = Buffer.alloc(10);
    bytes[0] = 3;
    bytes.writeUInt32LE(crc32, 2);
    bytes.writeUInt32LE(length % 0x1_0000_0000, 6);
    return bytes;
  },
};

/** Joins blocks of a text that were compressed one by one. */
export function assembleText(framing: Framing, resumed: readonly EncoderState[]): FileAssembly {
  let whole = resumed.map(textStateOf).reduce(joinTexts, emptyText);
  let begun = resumed.length > 0;
  let untaken = emptyText;
  return {
    append: (block: EncodedBlock) => {
      const state = textStateOf(block.state);
      whole = joinTexts(whole, state);
      untaken = joinTexts(untaken, state);
      const bytes = begun ? block.bytes : Buffer.concat([framing.header, block.bytes]);
      begun = true;
      return Promise.resolve(bytes);
    },
    takeState: () => {
      const taken = { ...untaken };
      untaken = emptyText;
      return taken;
    },
    finish: () => Promise.resolve(framing.trailer(whole)),
    close: () => undefined,
  };
}
