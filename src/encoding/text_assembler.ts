import type { EncodedBlock, EncoderState, FileAssembly } from './encoder.ts';
import type { ConcatenableCompression } from './concatenable_compression.ts';
import { emptyText, joinTexts, stateOfText, textStateOf, type TextState } from './text_state.ts';

/**
 * Joins blocks of a text that were compressed one by one.
 * @param head the text in front of the first row
 */
export function assembleText(
  compression: ConcatenableCompression,
  head: Buffer,
  resumed: readonly EncoderState[],
): FileAssembly {
  let whole = resumed.map(textStateOf).reduce(joinTexts, emptyText);
  let untaken = emptyText;
  let begun = resumed.length > 0;

  const add = (state: TextState): void => {
    whole = joinTexts(whole, state);
    untaken = joinTexts(untaken, state);
  };
  /** What stands in front of everything, once. */
  const begin = (): Buffer[] => {
    if (begun) return [];
    begun = true;
    add(stateOfText(head));
    return [compression.opening, ...(head.length > 0 ? [compression.compress(head)] : [])];
  };

  return {
    append(block: EncodedBlock) {
      const opening = begin();
      add(textStateOf(block.state));
      return Promise.resolve(joined([...opening, block.bytes]));
    },
    takeState() {
      const taken = { ...untaken };
      untaken = emptyText;
      return taken;
    },
    finish: () => Promise.resolve(joined([...begin(), compression.closing(whole)])),
    close: () => undefined,
  };
}

const joined = (pieces: readonly Buffer[]): Buffer =>
  pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
