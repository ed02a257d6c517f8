import { crc32 } from 'node:zlib';
import type { ExistingRun, PlannedPart } from '../domain/run.ts';
import type { EncodedBlock, FileEncoder } from '../encoding/encoder.ts';
import { formatCrc32 } from '../encoding/format_crc32.ts';
import type { RowBlock } from '../source/source.ts';
import { statesOf } from './file_writer.ts';
import type { ExportAttempt } from './range_attempt.ts';
import { rowRangeOf } from './row_range.ts';

/**
 * Reads and encodes the block again in which the last of these parts ends.
 * @returns null when the part ends with a block; `changed` when the part does not begin with the bytes of the block as it
 * is now, because its rows have changed
 */
export async function readCutBlock(
  attempt: ExportAttempt,
  { spec }: Pick<ExistingRun, 'spec'>,
  parts: readonly PlannedPart[],
): Promise<EncodedBlock | 'changed' | null> {
  const { dependencies, encoder, selection, signal } = attempt;
  const cut = parts.at(-1)?.cut;
  if (!cut) return null;
  const range = { after: cut.after, until: cut.last };
  const options = { blockBytes: encoder.blockBytes, signal };
  const blocks: RowBlock[] = [];
  for await (const block of dependencies.source.blocks(rowRangeOf(spec, selection), range, options))
    blocks.push(block);
  const joined = joinBlocks(blocks);
  if (!joined) return 'changed';
  const block = await encodeAgain(encoder, joined, cut.joined);
  if (!block) return 'changed';
  const assembly = encoder.assemble(statesOf(parts));
  try {
    const sent = (await assembly.append(block)).subarray(0, cut.skip);
    return sent.length === cut.skip && formatCrc32(crc32(sent)) === cut.crc32 ? block : 'changed';
  } finally {
    assembly.close();
  }
}

/** Encodes rows as they were encoded before; null when there are fewer rows. */
async function encodeAgain(
  { encode, grouping }: Pick<FileEncoder, 'encode' | 'grouping'>,
  rows: RowBlock,
  counts: readonly number[] = [],
): Promise<EncodedBlock | null> {
  if (!grouping || counts.length === 0) return encode(rows);
  const blocks = splitBlock(rows, counts);
  return blocks && grouping.join(await Promise.all(blocks.map((block) => grouping.encode(block))));
}

/** Blocks of these numbers of rows; null when the rows are not as many. They need no keys of their own. */
function splitBlock(whole: RowBlock, counts: readonly number[]): RowBlock[] | null {
  if (counts.reduce((sum, count) => sum + count, 0) !== whole.rows) return null;
  let at = 0;
  return counts.map((rows) => {
    const start = at;
    for (let row = 0; row < rows; row += 1) at = endOfTuple(whole.block, at);
    const block = Buffer.allocUnsafeSlow(at - start);
    whole.block.copy(block, 0, start, at);
    return { ...whole, block, rows };
  });
}

/** The end of the tuple at an offset (see `RowBlock`). */
function endOfTuple(block: Buffer, start: number): number {
  let at = start + 2;
  for (let left = block.readInt16BE(start); left > 0; left -= 1) at += 4 + Math.max(0, block.readInt32BE(at));
  return at;
}

/** One block of the rows of all. The pages of a source are shorter at first, so one block may come in several. */
function joinBlocks(blocks: readonly RowBlock[]): RowBlock | null {
  const [first] = blocks;
  const last = blocks.at(-1);
  if (!first || !last) return null;
  if (first === last) return first;
  // With a separate buffer, which can be transferred to a thread.
  const block = Buffer.allocUnsafeSlow(blocks.reduce((sum, each) => sum + each.block.length, 0));
  let length = 0;
  for (const each of blocks) length += each.block.copy(block, length);
  const rows = blocks.reduce((sum, each) => sum + each.rows, 0);
  return { ...first, block, rows, last: last.last };
}
