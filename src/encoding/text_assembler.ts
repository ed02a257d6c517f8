import type { EncodedBlock, EncoderState, FileAssembly } from './encoder.ts';
import type { ConcatenableCompression } from './concatenable_compression.ts';
import { emptyText, concatenateStates, textStateOf, parseTextState, type TextState } from './text_state.ts';

/** Joins blocks of text that were compressed separately. @param fileHeader the text before the first row */
export function assembleText(
  compression: ConcatenableCompression,
  fileHeader: Buffer,
  resumed: readonly EncoderState[],
): FileAssembly {
  let whole = resumed.map(parseTextState).reduce(concatenateStates, emptyText);
  let pending = emptyText;
  let started = resumed.length > 0;

  const add = (state: TextState): void => {
    whole = concatenateStates(whole, state);
    pending = concatenateStates(pending, state);
  };
  /** The compressed file header, before the first block only. */
  const start = (): Buffer[] => {
    if (started) return [];
    started = true;
    add(textStateOf(fileHeader));
    return [compression.header, ...(fileHeader.length > 0 ? [compression.compress(fileHeader)] : [])];
  };

  return {
    append(block: EncodedBlock) {
      const header = start();
      add(parseTextState(block.state));
      return Promise.resolve(concatenated([...header, block.bytes]));
    },
    takeState() {
      const taken = { ...pending };
      pending = emptyText;
      return taken;
    },
    finish: () => Promise.resolve(concatenated([...start(), compression.trailer(whole)])),
    close: () => undefined,
  };
}

const concatenated = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
