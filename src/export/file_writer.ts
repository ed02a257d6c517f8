/**
 * Writes one file: `FileWriter` joins the bytes of encoded blocks to parts and sends several at a time, `PartBuilder` knows
 * which rows end in which part, `PartSender` limits the parts in flight, `ByteQueue` holds the bytes that no part has yet.
 */
import { crc32 } from 'node:zlib';
import { DestinationError, type FileUpload } from '../destination/destination.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { BlockCut, CompletedFile, OpenUpload, PlannedPart, SortKey } from '../domain/exported_files.ts';
import { addFingerprints, type Fingerprint } from '../domain/fingerprint.ts';
import { combineCrc32, formatCrc32 } from '../encoding/compression.ts';
import type { ReservedBlock } from '../encoding/encode_blocks.ts';
import {
  type EncodedBlock,
  type EncoderState,
  type FileAssembly,
  type FileEncoder,
} from '../encoding/encoder.ts';
import { type MemoryReservation, releaseMemory } from '../encoding/memory.ts';
import { endOfTuple } from '../source/sort_key.ts';
import type { ReadOptions, RowBlock, RowRange, Source } from '../source/source.ts';

/** A larger part is sent alone. */
const maxBytesInFlight = 48 * 1024 * 1024;
const maxPartsInFlight = 3;

/** A part with its bytes. */
export interface BuiltPart {
  readonly part: PlannedPart;
  readonly body: Buffer;
}

/** Where a file is written, and the callbacks that record each step before it happens. */
interface FileTarget {
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  /** The file to resume; null creates one with its first part. */
  readonly resumed: ResumedFile | null;
  /** The key after which the rows start. */
  readonly after: SortKey | null;
  readonly memory: Pick<MemoryReservation, 'isOverBudget' | 'reserveEncoded' | 'releaseEncoded'>;
  readonly signal: AbortSignal;
  /** The fingerprint of a part without rows. */
  readonly emptyFingerprint: Fingerprint;
  /** Creates the upload of a new file and records it. */
  startUpload(): Promise<FileUpload>;
  /** Writes a new file of one part in one request, and records its part before that. */
  writeWholeFile(whole: BuiltPart): Promise<CompletedFile>;
  planPart(key: string, part: PlannedPart): Promise<void>;
  /** Rejects when a newer attempt exists. Called after the last part has arrived and before the upload is completed. */
  requireAttempt(): Promise<unknown>;
}

/** Writes encoded blocks to one object: it joins them to parts and sends several parts at a time. */
export interface FileWriter {
  /** Adds a block and releases it. Its encoded bytes stay in memory until their part has arrived. Waits while too many are in flight. */
  append(encoded: ReservedBlock): Promise<void>;
  /** How many parts this writer planned, without those of a resumed file. */
  partsPlanned(): number;
  /** Whether another attempt could resume the file; the encoder and the permissions in the bucket decide. */
  canBeResumed(): Promise<boolean>;
  /** Whether the file has reached `maxFileBytes`, or the maximum number of parts. */
  isFull(maxFileBytes: number | null): boolean;
  /** Waits until every part has arrived; rejects with the first error. */
  settled(): Promise<void>;
  /** Sends the rest and completes the upload. Returns null and writes no object when there was no row. */
  finish(): Promise<CompletedFile | null>;
  /** Releases the encoder's state of the file. */
  close(): void;
}

/**
 * Creates or resumes a file. Its upload is created with the first part, so that a range without rows creates none, and a
 * file of one part can be written in one request.
 */
export function createFileWriter(target: FileTarget): FileWriter {
  const { destination, encoder, memory, signal, resumed } = target;
  const planned: PlannedPart[] = [...(resumed?.parts ?? [])];
  const etags = new Map(resumed?.etags);
  const sender = createPartSender(memory);
  const assembly = encoder.assemble(statesOf(planned));
  const builder = createPartBuilder(assembly, target.after, target.emptyFingerprint);
  let cut = resumed?.parts.at(-1)?.cut ?? null;
  let upload = resumed?.upload;
  let partNumber = resumed?.nextPartNumber ?? 1;
  let fileBytes = planned.reduce((sum, { bytes }) => sum + bytes, 0);
  let isListable: boolean | undefined;

  const addBytes = (add: () => void): void => {
    const before = builder.length;
    add();
    const added = builder.length - before;
    memory.reserveEncoded(added);
    fileBytes += added;
  };

  /** The size of the next part; a part that need not have exactly this size gets all bytes that wait. */
  const nextPartBytes = (): { readonly bytes: number; readonly exact: boolean } => {
    const exact = upload ? upload.part_bytes : destination.equalPartBytes;
    return {
      bytes: exact ?? upload?.partBytes(planned.length + 1) ?? destination.firstPartBytes,
      exact: exact !== null,
    };
  };

  const sendPart = async (length: number, final: boolean): Promise<void> => {
    const to = (upload ??= await target.startUpload());
    const { part, body } = builder.take(length, { part_number: partNumber++, final });
    await target.planPart(to.key, part);
    planned.push(part);
    await sender.send(body.length, async () => {
      const { part_number, etag } = await to.putPart(part.part_number, body, signal);
      etags.set(part_number, etag);
      memory.releaseEncoded(part.bytes);
      releaseMemory(body);
    });
  };

  const sendFullParts = async (): Promise<void> => {
    for (let next = nextPartBytes(); builder.length >= next.bytes; next = nextPartBytes())
      await sendPart(next.exact ? next.bytes : builder.length, false);
  };

  const writeWholeFile = async (): Promise<CompletedFile> => {
    const whole = builder.take(builder.length, { part_number: partNumber++, final: true });
    const file = await target.writeWholeFile(whole);
    planned.push(whole.part);
    memory.releaseEncoded(whole.part.bytes);
    releaseMemory(whole.body);
    return file;
  };

  return {
    append: async ({ block, release }) => {
      const bytes = await assembly.append(block);
      addBytes(() => builder.addBlock(block, bytes, cut));
      cut = null;
      release();
      await sendFullParts();
    },
    partsPlanned: () => planned.length - (resumed?.parts.length ?? 0),
    canBeResumed: async () => {
      if (!upload || !encoder.resumable) return false;
      isListable ??= (await listParts(upload, signal)) !== 'not_listable';
      return isListable;
    },
    isFull: (maxFileBytes) =>
      (maxFileBytes !== null && fileBytes >= maxFileBytes) ||
      (upload !== undefined && partNumber >= upload.maxPartNumber),
    settled: () => sender.settled(),
    finish: async () => {
      if (planned.length === 0 && !builder.hasRows()) return null;
      const trailer = await assembly.finish();
      addBytes(() => builder.addTrailer(trailer));
      // The trailer can be longer than a part.
      for (let next = nextPartBytes(); next.exact && builder.length > next.bytes; next = nextPartBytes())
        await sendPart(next.bytes, false);
      if (!upload && destination.writesWholeFiles) return writeWholeFile();
      if (builder.length > 0 || builder.hasRows() || planned.length === 0)
        await sendPart(builder.length, true);
      await sender.settled();
      // Every part has arrived, so an attempt that starts after this check finds them all and completes the same object.
      await target.requireAttempt();
      if (!upload) throw new RangeError('A file with parts has an upload.');
      return completeFile(upload, planned, etags, signal);
    },
    close: () => assembly.close(),
  };
}

/** Completes an upload, which makes its object visible. */
export async function completeFile(
  upload: FileUpload,
  planned: readonly PlannedPart[],
  etags: ReadonlyMap<number, string>,
  signal: AbortSignal,
): Promise<CompletedFile> {
  const file = summarizeParts(upload.key, planned);
  const parts = planned.map(({ part_number }) => ({ part_number, etag: etags.get(part_number) ?? '' }));
  return { ...file, ...(await upload.complete(parts, file.bytes, signal)) };
}

/**
 * The totals of a file: its rows, size, checksum and key range, computed from its parts.
 * @throws RangeError without parts
 */
export function summarizeParts(
  key: string,
  parts: readonly PlannedPart[],
): Omit<CompletedFile, 'expires_at'> {
  const [firstPart, ...furtherParts] = parts.map(({ fingerprint }) => fingerprint);
  if (!firstPart) throw new RangeError('A file has at least one part.');
  const withRows = parts.filter(({ first }) => first !== null);
  const crc = parts.reduce((sum, part) => combineCrc32(sum, Number.parseInt(part.crc32, 16), part.bytes), 0);
  return {
    key,
    rows: parts.reduce((sum, { rows }) => sum + rows, 0),
    fingerprint: addFingerprints(firstPart, ...furtherParts),
    rejected: parts.reduce((sum, { rejected }) => sum + rejected, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    crc32: formatCrc32(crc),
    first: withRows.at(0)?.first ?? null,
    last: withRows.at(-1)?.last ?? null,
  };
}

/** Cuts the bytes of a file into parts, and counts the rows of a block with the part in which the block ends. */
interface PartBuilder {
  /** Bytes that no part has yet. */
  readonly length: number;
  /** Whether no part has yet some rows, also rejected ones. */
  hasRows(): boolean;
  /**
   * Adds a block with the bytes that it adds to the file. Take parts until `length` is below their size before the next
   * call. `cut`: which of these bytes earlier parts have, when a file is resumed inside the block.
   */
  addBlock(block: EncodedBlock, bytes: Buffer, cut: BlockCut | null): void;
  /** Adds the bytes that end the file. */
  addTrailer(bytes: Buffer): void;
  /** Makes a part of the next bytes. */
  take(length: number, part: { readonly part_number: number; readonly final: boolean }): BuiltPart;
}

/** Rows of the blocks that end in the next part. */
type EndedRows = Pick<PlannedPart, 'rows' | 'rejected' | 'fingerprint' | 'first' | 'last'>;

/** The last block, as long as some of its bytes are in no part. */
interface OpenBlock {
  readonly block: EncodedBlock;
  readonly after: SortKey | null;
  /** Bytes of the block in parts, their CRC-32, and the bytes that are in none. */
  skip: number;
  crc32: number;
  left: number;
}

/**
 * @param after the key after which the first block starts
 * @param emptyFingerprint the fingerprint of a part without rows
 */
function createPartBuilder(
  assembly: Pick<FileAssembly, 'takeState'>,
  after: SortKey | null,
  emptyFingerprint: Fingerprint,
): PartBuilder {
  const nothing: EndedRows = {
    rows: 0,
    rejected: 0,
    fingerprint: emptyFingerprint,
    first: null,
    last: null,
  };
  const queue = createByteQueue();
  let ended = nothing;
  let open: OpenBlock | null = null;
  let lastKey = after;
  let hasTrailer = false;

  const endBlock = (): void => {
    if (!open) return;
    const { block } = open;
    ended = {
      rows: ended.rows + block.rows,
      rejected: ended.rejected + block.rejected.length,
      fingerprint: addFingerprints(ended.fingerprint, block.fingerprint),
      first: ended.first ?? block.first,
      last: block.last,
    };
    open = null;
  };

  /** Accounts for the end of a part. The open block is the last one, so what is left in the queue belongs to it. */
  const cutBlock = (body: Buffer): BlockCut | null => {
    if (!open || hasTrailer || queue.length === 0) {
      endBlock();
      return null;
    }
    const consumed = open.left - queue.length;
    open.crc32 = crc32(body.subarray(body.length - consumed), open.crc32);
    open.skip += consumed;
    open.left = queue.length;
    const { joined, last } = open.block;
    return {
      after: open.after,
      last,
      ...(joined && { joined }),
      skip: open.skip,
      crc32: formatCrc32(open.crc32),
    };
  };

  return {
    get length() {
      return queue.length;
    },
    hasRows: () => open !== null || ended.rows > 0 || ended.rejected > 0,
    addBlock: (block, bytes, cut) => {
      endBlock();
      const skip = cut?.skip ?? 0;
      open = {
        block,
        after: lastKey,
        skip,
        crc32: cut ? Number.parseInt(cut.crc32, 16) : 0,
        left: bytes.length - skip,
      };
      lastKey = block.last;
      queue.push(bytes.subarray(skip));
    },
    addTrailer: (bytes) => {
      // A part is taken as soon as there are enough bytes, so the next one ends in the trailer or after it.
      hasTrailer = true;
      queue.push(bytes);
    },
    take: (length, { part_number, final }) => {
      const body = queue.take(length);
      const cut = cutBlock(body);
      const part: PlannedPart = {
        part_number,
        ...ended,
        bytes: body.length,
        crc32: formatCrc32(crc32(body)),
        encoder_state: assembly.takeState({ exceptLast: cut !== null }),
        ...(cut && { cut }),
        ...(!final && hasTrailer && queue.length > 0 && { in_trailer: true }),
        ...(final && { final }),
      };
      ended = nothing;
      return { part, body };
    },
  };
}

/** Bytes that wait for the next part. */
interface ByteQueue {
  readonly length: number;
  push(bytes: Buffer): void;
  /** Takes bytes from the front as one buffer, and releases the buffers that are used up. */
  take(length: number): Buffer;
}

/** Creates an empty queue. It owns the buffers that are pushed. */
function createByteQueue(): ByteQueue {
  let chunks: Buffer[] = [];
  /** How many bytes of the first chunk were taken. */
  let taken = 0;
  let length = 0;
  return {
    get length() {
      return length;
    },
    push: (bytes) => {
      if (bytes.length > 0) chunks.push(bytes);
      length += bytes.length;
    },
    take: (wanted) => {
      const body = Buffer.allocUnsafeSlow(wanted);
      let filled = 0;
      let used = 0;
      for (const chunk of chunks) {
        if (filled === wanted) break;
        const copied = chunk.copy(body, filled, taken, taken + wanted - filled);
        filled += copied;
        taken += copied;
        if (taken < chunk.length) break;
        used += 1;
        taken = 0;
      }
      for (const chunk of chunks.slice(0, used)) releaseMemory(chunk);
      chunks = chunks.slice(used);
      length -= filled;
      return body;
    },
  };
}

/** Sends parts in the background. After an error, the next call throws it. */
interface PartSender {
  /** Waits until the part may be in flight and starts to send it. */
  send(bytes: number, work: () => Promise<void>): Promise<void>;
  /** Waits until nothing is in flight. */
  settled(): Promise<void>;
}

/** Limits the parts and bytes of one file that are in flight; while memory is over budget, to one part. */
function createPartSender(memory: Pick<MemoryReservation, 'isOverBudget'>): PartSender {
  const inFlight = new Set<Promise<void>>();
  let bytesInFlight = 0;
  let failure: { readonly error: unknown } | undefined;
  const throwFailure = (): void => {
    if (failure) throw failure.error;
  };
  const isFull = (bytes: number): boolean =>
    inFlight.size >= maxPartsInFlight ||
    (inFlight.size > 0 && (bytesInFlight + bytes > maxBytesInFlight || memory.isOverBudget()));
  return {
    send: async (bytes: number, work: () => Promise<void>): Promise<void> => {
      while (isFull(bytes)) await Promise.race(inFlight);
      throwFailure();
      bytesInFlight += bytes;
      const sending = work()
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => {
          bytesInFlight -= bytes;
          inFlight.delete(sending);
        });
      inFlight.add(sending);
    },
    settled: async (): Promise<void> => {
      await Promise.all(inFlight);
      throwFailure();
    },
  };
}

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
async function listParts(
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
const statesOf = (parts: readonly PlannedPart[]): readonly EncoderState[] =>
  parts.some(({ last }) => last !== null) ? parts.map(({ encoder_state }) => encoder_state) : [];
