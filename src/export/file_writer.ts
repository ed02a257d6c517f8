import { crc32 } from 'node:zlib';
import type { Destination, FileUpload } from '../destination/destination.ts';
import type { CompletedFile, PlannedPart, SortKey } from '../domain/run.ts';
import type { MemoryReservation } from '../encoding/memory_budget.ts';
import type { ReservedBlock } from '../encoding/encode_blocks.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import { releaseMemory } from '../encoding/release_memory.ts';
import { tryAbortUpload } from './abort_upload.ts';
import { summarizeParts, formatCrc32 } from './file_summary.ts';
import { createPartSender } from './part_sender.ts';
import { listParts } from './upload_state.ts';

/** A file that another attempt began: its confirmed parts, with what the destination calls them. */
export interface ResumedFile {
  readonly upload: FileUpload;
  readonly parts: readonly PlannedPart[];
  /** Part number to ETag. */
  readonly etags: ReadonlyMap<number, string>;
  readonly nextPartNumber: number;
}

/** Where a file goes, and who is told of each step before it is taken. */
export interface FileTarget {
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  readonly key: string;
  /** The file to go on with; null begins one with the first block. */
  readonly resumed: ResumedFile | null;
  readonly memory: Pick<MemoryReservation, 'isOverBudget' | 'reserveEncoded' | 'releaseEncoded'>;
  readonly signal: AbortSignal;
  recordUpload(upload: FileUpload): Promise<unknown>;
  planPart(part: PlannedPart): Promise<void>;
  /** Rejects when another attempt has taken over; asked when every part has arrived and before the file is made. */
  requireAttempt(): Promise<unknown>;
}

/** Joins encoded blocks to one object: gathers them into parts and sends several at a time. */
export interface FileWriter {
  readonly key: string;
  /** Adds a block and releases it; what it made of the file is held until its part has arrived. Waits while too many bytes are on their way. */
  append(encoded: ReservedBlock): Promise<void>;
  /** How many parts this writer has planned, those before it not counted. */
  partsPlanned(): number;
  /** Whether another attempt could go on with the file: its encoder, and the rights in the bucket, decide. */
  canBeResumed(): Promise<boolean>;
  /** Whether the file has so many bytes, or as many parts as an upload can have. */
  isFull(maxFileBytes: number | null): boolean;
  /** Waits until every part on its way has arrived; rejects with the first failure. */
  settled(): Promise<void>;
  /** Sends the rest and makes the object visible; null, and no object, when there was no row. */
  finish(): Promise<CompletedFile | null>;
  /** Gives up what the encoder holds of the file. */
  close(): void;
}

/** What has been gathered for the next part. */
interface Gathered {
  readonly blocks: Buffer[];
  bytes: number;
  rows: number;
  rejected: number;
  first: SortKey | null;
  last: SortKey | null;
}

const nothing = (): Gathered => ({ blocks: [], bytes: 0, rows: 0, rejected: 0, first: null, last: null });

/** Begins a file or goes on with one. An upload is created with the first block, so that no rows leave no trace. */
export function createFileWriter(target: FileTarget): FileWriter {
  const { destination, encoder, key, memory, signal, resumed } = target;
  const planned: PlannedPart[] = [...(resumed?.parts ?? [])];
  const etags = new Map(resumed?.etags);
  const sender = createPartSender(memory);
  const assembly = encoder.assemble(planned.map(({ encoder_state }) => encoder_state));
  let upload = resumed?.upload;
  let partNumber = resumed?.nextPartNumber ?? 1;
  let fileBytes = planned.reduce((sum, { bytes }) => sum + bytes, 0);
  let gathered = nothing();
  let listable: boolean | undefined;

  const gather = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    gathered.blocks.push(bytes);
    gathered.bytes += bytes.length;
    memory.reserveEncoded(bytes.length);
    fileBytes += bytes.length;
  };

  const begin = async (): Promise<FileUpload> => {
    const begun = await destination.createUpload(key, encoder.contentType, signal);
    try {
      await target.recordUpload(begun);
    } catch (error) {
      // What the journal does not know of, nobody else would ever throw away.
      await tryAbortUpload(destination, begun);
      throw error;
    }
    upload = begun;
    return begun;
  };

  /** The part that has been gathered, joined; nothing else keeps its blocks from here on. */
  const takePart = (final: boolean): { readonly part: PlannedPart; readonly body: Buffer } => {
    const { rows, rejected, first, last, blocks, bytes } = gathered;
    gathered = nothing();
    const body = Buffer.concat(blocks, bytes);
    for (const block of blocks) releaseMemory(block);
    const part: PlannedPart = {
      part_number: partNumber++,
      rows,
      rejected,
      bytes: body.length,
      crc32: formatCrc32(crc32(body)),
      first,
      last,
      encoder_state: assembly.takeState(),
      ...(final && { final }),
    };
    return { part, body };
  };

  const sendPart = async (to: FileUpload, final: boolean): Promise<void> => {
    const { part, body } = takePart(final);
    await target.planPart(part);
    planned.push(part);
    await sender.send(body.length, async () => {
      const { part_number, etag } = await to.putPart(part.part_number, body, signal);
      etags.set(part_number, etag);
      memory.releaseEncoded(part.bytes);
      releaseMemory(body);
    });
  };

  const isEmpty = (): boolean => planned.length === 0 && gathered.rows === 0 && gathered.rejected === 0;

  return {
    key,
    append: async (encoded) => {
      const { block } = encoded;
      const to = upload ?? (await begin());
      gather(await assembly.append(block));
      encoded.release();
      gathered.rows += block.rows;
      gathered.rejected += block.rejected.length;
      gathered.first ??= block.first;
      gathered.last = block.last;
      if (gathered.bytes >= to.partBytes(planned.length + 1)) await sendPart(to, false);
    },
    partsPlanned: () => planned.length - (resumed?.parts.length ?? 0),
    canBeResumed: async () => {
      if (!upload || !encoder.resumable) return false;
      listable ??= (await listParts(upload, signal)) !== 'hidden';
      return listable;
    },
    isFull: (maxFileBytes) =>
      (maxFileBytes !== null && fileBytes >= maxFileBytes) ||
      (upload !== undefined && partNumber >= upload.partNumberMaximum),
    settled: () => sender.settled(),
    finish: async () => {
      if (!upload || isEmpty()) return null;
      gather(await assembly.finish());
      if (gathered.bytes > 0 || gathered.rejected > 0 || planned.length === 0) await sendPart(upload, true);
      await sender.settled();
      // Every part has arrived by now, so an attempt that begins after this finds them all and makes the same object.
      await target.requireAttempt();
      return completeFile(upload, planned, etags, signal);
    },
    close: () => assembly.close(),
  };
}

/** Makes the object of all these parts visible. */
export async function completeFile(
  upload: FileUpload,
  planned: readonly PlannedPart[],
  etags: ReadonlyMap<number, string>,
  signal: AbortSignal,
): Promise<CompletedFile> {
  const file = summarizeParts(upload.key, planned);
  const parts = planned.map(({ part_number }) => ({ part_number, etag: etags.get(part_number) ?? '' }));
  await upload.complete(parts, file.bytes, signal);
  return file;
}
