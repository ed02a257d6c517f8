import { crc32 } from 'node:zlib';
import type { Destination, FileUpload } from '../destination/destination.ts';
import type { CompletedFile, PlannedPart, SortKey } from '../domain/run.ts';
import type { MemoryReservation } from '../encoding/memory_budget.ts';
import type { ReservedBlock } from '../encoding/encode_blocks.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import { formatCrc32 } from '../encoding/format_crc32.ts';
import { releaseMemory } from '../encoding/release_memory.ts';
import { tryAbortUpload } from './abort_upload.ts';
import { summarizeParts } from './file_summary.ts';
import { createPartSender } from './part_sender.ts';
import { listParts } from './upload_state.ts';

/** A file that an earlier attempt started, with its confirmed parts. */
export interface ResumedFile {
  readonly upload: FileUpload;
  readonly parts: readonly PlannedPart[];
  /** ETags by part number. */
  readonly etags: ReadonlyMap<number, string>;
  readonly nextPartNumber: number;
}

/** Where a file is written, and the callbacks that record each step before it happens. */
export interface FileTarget {
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  readonly key: string;
  /** The file to resume; null creates one with the first block. */
  readonly resumed: ResumedFile | null;
  readonly memory: Pick<MemoryReservation, 'isOverBudget' | 'reserveEncoded' | 'releaseEncoded'>;
  readonly signal: AbortSignal;
  recordUpload(upload: FileUpload): Promise<unknown>;
  planPart(part: PlannedPart): Promise<void>;
  /** Rejects when a newer attempt exists. Called after the last part has arrived and before the upload is completed. */
  requireAttempt(): Promise<unknown>;
}

/** Writes encoded blocks to one object: it joins them to parts and sends several parts at a time. */
export interface FileWriter {
  readonly key: string;
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

/** Encoded bytes that wait for the next part. */
interface PendingPart {
  readonly blocks: Buffer[];
  bytes: number;
  rows: number;
  rejected: number;
  first: SortKey | null;
  last: SortKey | null;
}

const emptyPart = (): PendingPart => ({
  blocks: [],
  bytes: 0,
  rows: 0,
  rejected: 0,
  first: null,
  last: null,
});

/** Creates or resumes a file. Its upload is created with the first block, so that a range without rows creates none. */
export function createFileWriter(target: FileTarget): FileWriter {
  const { destination, encoder, key, memory, signal, resumed } = target;
  const planned: PlannedPart[] = [...(resumed?.parts ?? [])];
  const etags = new Map(resumed?.etags);
  const sender = createPartSender(memory);
  const assembly = encoder.assemble(planned.map(({ encoder_state }) => encoder_state));
  let upload = resumed?.upload;
  let partNumber = resumed?.nextPartNumber ?? 1;
  let fileBytes = planned.reduce((sum, { bytes }) => sum + bytes, 0);
  let pending = emptyPart();
  let isListable: boolean | undefined;

  const addBytes = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    pending.blocks.push(bytes);
    pending.bytes += bytes.length;
    memory.reserveEncoded(bytes.length);
    fileBytes += bytes.length;
  };

  const createUpload = async (): Promise<FileUpload> => {
    const created = await destination.createUpload(key, encoder.contentType, signal);
    try {
      await target.recordUpload(created);
    } catch (error) {
      // An upload that the journal does not know would never be aborted otherwise.
      await tryAbortUpload(destination, created);
      throw error;
    }
    upload = created;
    return created;
  };

  /** Joins the pending blocks to a part and releases them. */
  const takePendingPart = (final: boolean): { readonly part: PlannedPart; readonly body: Buffer } => {
    const { rows, rejected, first, last, blocks, bytes } = pending;
    pending = emptyPart();
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
    const { part, body } = takePendingPart(final);
    await target.planPart(part);
    planned.push(part);
    await sender.send(body.length, async () => {
      const { part_number, etag } = await to.putPart(part.part_number, body, signal);
      etags.set(part_number, etag);
      memory.releaseEncoded(part.bytes);
      releaseMemory(body);
    });
  };

  const isEmpty = (): boolean => planned.length === 0 && pending.rows === 0 && pending.rejected === 0;

  return {
    key,
    append: async (encoded) => {
      const { block } = encoded;
      const to = upload ?? (await createUpload());
      addBytes(await assembly.append(block));
      encoded.release();
      pending.rows += block.rows;
      pending.rejected += block.rejected.length;
      pending.first ??= block.first;
      pending.last = block.last;
      if (pending.bytes >= to.partBytes(planned.length + 1)) await sendPart(to, false);
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
      if (!upload || isEmpty()) return null;
      addBytes(await assembly.finish());
      if (pending.bytes > 0 || pending.rejected > 0 || planned.length === 0) await sendPart(upload, true);
      await sender.settled();
      // Every part has arrived, so an attempt that starts after this check finds them all and completes the same object.
      await target.requireAttempt();
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
