/**
 * Writes one file: `FileWriter` joins the bytes of encoded blocks to parts and sends several at a time, `PartBuilder` knows
 * which rows end in which part, `PartSender` limits the parts in flight, `ByteQueue` holds the bytes that no part has yet.
 */
import { crc32 } from 'node:zlib';
import type { Destination } from '../destination/open_destination.ts';
import type { FileUpload } from '../destination/destination.ts';
import { addFingerprints, type Fingerprint } from '../domain/fingerprint.ts';
import type { BlockCut, CompletedFile, PlannedPart, SortKey } from '../domain/exported_files.ts';
import { combineCrc32 } from '../encoding/compression.ts';
import type { ReservedBlock } from '../encoding/encode_blocks.ts';
import { type EncodedBlock, type FileAssembly, type FileEncoder, formatCrc32 } from '../encoding/encoder.ts';
import { type MemoryReservation, releaseMemory } from '../encoding/memory.ts';
import { listParts, statesOf, type ResumedFile } from './resume.ts';

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
