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
  let lastBlock = emptyText;
  let started = resumed.length > 0;

  /** Adds a block. The file header belongs to the first one. */
  const add = (state: TextState): void => {
    whole = concatenateStates(whole, state);
    pending = concatenateStates(pending, lastBlock);
    lastBlock = state;
  };
  /** The compressed file header and its state, before the first block only. */
  const start = (): { readonly chunks: Buffer[]; readonly state: TextState } => {
    if (started) return { chunks: [], state: emptyText };
    started = true;
    const chunks = [compression.header, ...(fileHeader.length > 0 ? [compression.compress(fileHeader)] : [])];
    return { chunks, state: textStateOf(fileHeader) };
  };

  return {
    append(block: EncodedBlock) {
      const { chunks, state } = start();
      add(concatenateStates(state, parseTextState(block.state)));
      return Promise.resolve(concatenated([...chunks, block.bytes]));
    },
    takeState({ exceptLast } = { exceptLast: false }) {
      const taken = exceptLast ? { ...pending } : concatenateStates(pending, lastBlock);
      pending = emptyText;
      if (!exceptLast) lastBlock = emptyText;
      return taken;
    },
    finish() {
      const { chunks, state } = start();
      if (chunks.length > 0) add(state);
      return Promise.resolve(concatenated([...chunks, compression.trailer(whole)]));
    },
    close: () => undefined,
  };
}

const concatenated = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
