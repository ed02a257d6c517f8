import { crc32 } from 'node:zlib';
import { combineCrc32 } from './crc32_combine.ts';
import type { EncoderState } from './encoder.ts';

/** A stretch of a file's text before compression: its CRC-32 and its length in bytes. */
export type TextState = {
  readonly crc32: number;
  readonly length: number;
};

/** The state before the first byte. */
export const emptyText: TextState = { crc32: 0, length: 0 };

/** The state after these bytes alone. */
export const stateOfText = (text: Buffer): TextState => ({ crc32: crc32(text), length: text.length });

/** Two stretches laid end to end. */
export const joinTexts = (first: TextState, second: TextState): TextState => ({
  crc32: combineCrc32(first.crc32, second.crc32, second.length),
  length: first.length + second.length,
});

/** A journalled state as that of a text. @throws TypeError when it is none, which a text encoder never made */
export function textStateOf(state: EncoderState): TextState {
  if (typeof state === 'object' && state !== null && 'crc32' in state && 'length' in state) {
    const { crc32: checksum, length } = state;
    if (typeof checksum === 'number' && typeof length === 'number') return { crc32: checksum, length };
  }
  throw new TypeError('The state of a part is not that of a text.');
}
