import { crc32 } from 'node:zlib';
import { combineCrc32 } from './crc32_combine.ts';
import type { EncoderState } from './encoder.ts';

/** CRC-32 and length in bytes of a section of a file's uncompressed text. */
export type TextState = {
  readonly crc32: number;
  readonly length: number;
};

/** The state of an empty text. */
export const emptyText: TextState = { crc32: 0, length: 0 };

/** The state of these bytes. */
export const textStateOf = (text: Buffer): TextState => ({ crc32: crc32(text), length: text.length });

/** The state of two concatenated sections. */
export const concatenateStates = (first: TextState, second: TextState): TextState => ({
  crc32: combineCrc32(first.crc32, second.crc32, second.length),
  length: first.length + second.length,
});

/** Parses a journaled state. @throws TypeError when it is not the state of a text */
export function parseTextState(state: EncoderState): TextState {
  if (typeof state === 'object' && state !== null && 'crc32' in state && 'length' in state) {
    const { crc32: checksum, length } = state;
    if (typeof checksum === 'number' && typeof length === 'number') return { crc32: checksum, length };
  }
  throw new TypeError('The state of a part is not a text state.');
}
