/** Writes one file: joins the bytes of encoded blocks to parts, and sends them while more are encoded. */
import type { FileUpload } from '../destination/destination.ts';
import type { Destination } from '../destination/open_destination.ts';
import type { CompletedFile, PlannedPart } from '../domain/exported_files.ts';
import type { SortKey } from '../domain/sort_key.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { ReservedBlock } from '../encoding/encode_blocks.ts';
import type { FileEncoder } from '../encoding/encoder.ts';
import { type MemoryReservation, releaseMemory } from '../encoding/memory.ts';
import { completeFile } from './completed_file.ts';
import { type BuiltPart, createPartBuilder } from './part_builder.ts';
import { createPartSender } from './part_sender.ts';
import { listParts, type ResumedFile, statesOf } from './resumed_file.ts';

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
