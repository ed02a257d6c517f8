/** Where an attempt continues a file that an earlier one began: after the parts that its store has. */
import { crc32 } from 'node:zlib';
import { DestinationError, type FileUpload } from '../destination/destination.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { OpenUpload, PlannedPart } from '../domain/exported_files.ts';
import { formatCrc32 } from '../encoding/compression.ts';
import type { EncodedBlock, EncoderState, FileEncoder } from '../encoding/encoder.ts';
import { endOfTuple } from '../source/binary_tuple.ts';
import type { ReadOptions, RowBlock, RowRange, Source } from '../source/source.ts';

/** A file that an earlier attempt started, with its confirmed parts. */
export interface ResumedFile {
  readonly upload: FileUpload;
  readonly parts: readonly PlannedPart[];
  /** ETags by part number. */
  readonly etags: ReadonlyMap<number, string>;
  readonly nextPartNumber: number;
  /** The block in which the last part ends, read and encoded again; null if the part ends with a block. */
  readonly cutBlock: EncodedBlock | null;
}

/** What the bucket holds of an upload that an earlier attempt recorded. */
type UploadState =
  /** The object exists; only the journal does not know it yet. */
  | { readonly state: 'completed'; readonly expires_at: string | null }
  /** Every part exists, the last one included; the upload only has to be completed. */
  | {
      readonly state: 'all_parts_uploaded';
      readonly upload: FileUpload;
      readonly etags: ReadonlyMap<number, string>;
    }
  /** These parts exist; the file continues after the last of them, or inside the block that this part cuts. */
  | {
      readonly state: 'resumable';
      readonly upload: FileUpload;
      readonly parts: readonly PlannedPart[];
      readonly etags: ReadonlyMap<number, string>;
      readonly nextPartNumber: number;
    }
  /**
   * Neither the upload nor its object exists, or the upload cannot be completed: it has no part number left, or parts of
   * different sizes for a store that requires one size.
   */
  | { readonly state: 'missing' }
  /** The credentials must not list its parts. */
  | { readonly state: 'not_listable' };

/** An attempt starts its part numbers at a multiple of this, so that people can distinguish attempts. */
const partNumbersPerAttempt = 1_000;

/**
 * Inspects what the bucket holds of an upload. Parts are confirmed in order, up to the first one that is missing. A
 * part number is planned once, so a part of the planned number and size is the planned part.
 *
 * Call it after the attempt was recorded as started. An earlier attempt that still completes the upload passed its check
 * in the journal before that, when all its parts had arrived: so all of them are listed here.
 */
export async function inspectUpload(
  destination: Destination,
  open: OpenUpload,
  signal: AbortSignal,
): Promise<UploadState> {
  const { key, upload_id, upload_token, part_bytes, parts, highest_part_number } = open;
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  if (upload_id === null) {
    const written = await destination.findFile(open, bytes, signal);
    return written ? { state: 'completed', ...written } : { state: 'missing' };
  }
  const upload = destination.resumeUpload({ key, upload_id, upload_token, part_bytes });
  const listed = await listParts(upload, signal);
  if (listed === 'not_listable') return { state: 'not_listable' };
  if (listed === null) {
    const completed = await upload.findCompleted(bytes, signal);
    return completed ? { state: 'completed', ...completed } : { state: 'missing' };
  }
  const stored = new Map(listed.map((part) => [part.part_number, part]));
  const firstMissing = parts.findIndex((part) => stored.get(part.part_number)?.bytes !== part.bytes);
  const arrived = firstMissing === -1 ? parts : parts.slice(0, firstMissing);
  // Parts of different sizes would be refused when the upload is completed.
  if (destination.equalPartBytes !== null && part_bytes === null) return { state: 'missing' };
  const lastResumable = arrived.findLastIndex(({ in_trailer }) => in_trailer !== true);
  const confirmed = arrived.slice(0, lastResumable + 1);
  const etags = new Map(confirmed.map(({ part_number: n }) => [n, stored.get(n)?.etag ?? '']));
  if (confirmed.at(-1)?.final === true) return { state: 'all_parts_uploaded', upload, etags };
  const nextPartNumber = partNumberAfter(highest_part_number, upload.maxPartNumber);
  if (nextPartNumber === null) return { state: 'missing' };
  return { state: 'resumable', upload, parts: confirmed, etags, nextPartNumber };
}

/** Lists the parts of an upload that arrived; null when the upload was completed or aborted. */
export async function listParts(
  upload: FileUpload,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<FileUpload['listParts']>> | 'not_listable'> {
  try {
    return await upload.listParts(signal);
  } catch (error) {
    // A permanent error of this upload need not prevent writing a new one.
    if (error instanceof DestinationError && !error.transient) return 'not_listable';
    throw error;
  }
}

/** The next attempt's first part number. Gaps are legal, but use up numbers: the second half is assigned without gaps. */
function partNumberAfter(highest: number, max: number): number | null {
  if (highest === 0) return 1;
  const next = (Math.floor(highest / partNumbersPerAttempt) + 1) * partNumbersPerAttempt;
  if (next <= max / 2) return next;
  return highest < max ? highest + 1 : null;
}

/**
 * Reads and encodes the block again in which the last of these parts ends.
 * @returns null when the part ends with a block; `changed` when the part does not begin with the bytes of the block as it
 * is now, because its rows have changed
 */
export async function readCutBlock(
  {
    source,
    encoder,
    rows,
    ...reading
  }: Pick<ReadOptions, 'signal' | 'replacesBadValues'> & {
    readonly source: Pick<Source, 'blocks'>;
    readonly encoder: FileEncoder;
    readonly rows: RowRange;
  },
  parts: readonly PlannedPart[],
): Promise<EncodedBlock | 'changed' | null> {
  const cut = parts.at(-1)?.cut;
  if (!cut) return null;
  const range = { after: cut.after, until: cut.last };
  const options = { blockBytes: encoder.blockBytes, ...reading };
  const blocks: RowBlock[] = [];
  for await (const block of source.blocks(rows, range, options)) blocks.push(block);
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

/** The encoder states of parts in which a block ends: the first block brings the header of the file. */
export const statesOf = (parts: readonly PlannedPart[]): readonly EncoderState[] =>
  parts.some(({ last }) => last !== null) ? parts.map(({ encoder_state }) => encoder_state) : [];
