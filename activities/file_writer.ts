import { crc32 } from 'node:zlib';
import type { Destination, FileUpload, UploadedPart } from '../src/destination/destination.ts';
import type { ExportedFile, PlannedPart, SortKey } from '../src/domain/run.ts';
import type { EncodedBlock, FileEncoder } from '../src/encoding/encoder.ts';

/** Bytes of parts under way at once; a part larger than this goes alone. */
const bytesInFlightMaximum = 48 * 1024 * 1024;
const partsInFlightMaximum = 3;
/** How long a failing attempt spends on throwing its upload away. */
const discardTimeoutMs = 5_000;

/** Where a file goes, and who is told of each step before it is taken. */
export interface FileTarget {
  readonly destination: Destination;
  readonly encoder: FileEncoder;
  readonly key: string;
  readonly signal: AbortSignal;
  recordUpload(uploadId: string): Promise<unknown>;
  planPart(part: PlannedPart): Promise<void>;
}

/** Joins encoded blocks to one object: gathers them into parts and sends several at a time. */
export interface FileWriter {
  /** Adds a block; waits while too many bytes are on their way. */
  append(block: EncodedBlock): Promise<void>;
  /** Sends the rest and makes the object visible; null, and no object, when there was no block. */
  finish(): Promise<ExportedFile | null>;
  /** Throws what was sent away, as far as that is possible. */
  discard(): Promise<void>;
}

/** What has been gathered for the next part. */
interface Gathered {
  readonly blocks: Buffer[];
  bytes: number;
  rows: number;
  first: SortKey | null;
  last: SortKey | null;
}

const nothing = (): Gathered => ({ blocks: [], bytes: 0, rows: 0, first: null, last: null });

/** Begins a file. The upload is created with the first block, so that no rows leave no trace. */
export function createFileWriter(target: FileTarget): FileWriter {
  const { destination, encoder, key, signal } = target;
  const uploaded: UploadedPart[] = [];
  const sender = createSender();
  const file = { rows: 0, bytes: 0, crc: 0, first: null as SortKey | null, last: null as SortKey | null };
  let upload: FileUpload | undefined;
  let gathered = nothing();
  let state = encoder.initialState;
  let partNumber = 1;

  const begin = async (): Promise<FileUpload> => {
    const begun = await destination.beginFile(key, signal);
    upload = begun;
    await target.recordUpload(begun.upload_id);
    gather(encoder.header());
    return begun;
  };

  const gather = (bytes: Buffer): void => {
    if (bytes.length === 0) return;
    gathered.blocks.push(bytes);
    gathered.bytes += bytes.length;
  };

  const sendPart = async (to: FileUpload): Promise<void> => {
    const body = Buffer.concat(gathered.blocks, gathered.bytes);
    const { rows, first, last } = gathered;
    gathered = nothing();
    const number = partNumber++;
    await target.planPart({
      part_number: number,
      rows,
      bytes: body.length,
      crc32: hexadecimal(crc32(body)),
      first,
      last,
      encoder_state: state,
    });
    file.crc = crc32(body, file.crc);
    file.bytes += body.length;
    await sender.send(body.length, async () => {
      uploaded.push(await to.putPart(number, body, signal));
    });
  };

  return {
    append: async (block) => {
      const to = upload ?? (await begin());
      state = encoder.advance(state, block);
      gather(block.bytes);
      gathered.rows += block.rows;
      gathered.first ??= block.first;
      gathered.last = block.last;
      file.rows += block.rows;
      file.first ??= block.first;
      file.last = block.last;
      if (gathered.bytes >= to.partBytes(partNumber)) await sendPart(to);
    },
    finish: async () => {
      if (!upload) return null;
      gather(encoder.trailer(state));
      if (gathered.bytes > 0) await sendPart(upload);
      await sender.settled();
      const parts = uploaded.toSorted((one, other) => one.part_number - other.part_number);
      await upload.complete(parts, file.bytes, signal);
      const { rows, bytes, first, last } = file;
      return { key, rows, bytes, crc32: hexadecimal(file.crc), first, last };
    },
    discard: async () => {
      await sender.settled().catch(() => undefined);
      // A failure here leaves parts behind that the journal knows of, and it must not hide why the attempt failed.
      if (upload)
        await destination
          .abandonFile(key, upload.upload_id, AbortSignal.timeout(discardTimeoutMs))
          .catch(() => undefined);
    },
  };
}

const hexadecimal = (checksum: number): string => checksum.toString(16).padStart(8, '0');

/** Sends in the background within the bounds on what may be in flight; the first failure is thrown by the next call. */
function createSender() {
  const inFlight = new Set<Promise<void>>();
  let bytesInFlight = 0;
  let failure: { readonly error: unknown } | undefined;
  const throwFailure = (): void => {
    if (failure) throw failure.error;
  };
  const isFull = (bytes: number): boolean =>
    inFlight.size >= partsInFlightMaximum ||
    (inFlight.size > 0 && bytesInFlight + bytes > bytesInFlightMaximum);
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
