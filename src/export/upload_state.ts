import { DestinationError, type Destination, type FileUpload } from '../destination/destination.ts';
import type { OpenUpload, PlannedPart } from '../domain/run.ts';

/** What is left of an upload that an earlier attempt recorded. */
export type UploadState =
  /** The object was made of all its parts, only nobody said so any more. */
  | { readonly state: 'finished' }
  /** Every part of the file is there, its end included: only the object is not. */
  | { readonly state: 'whole'; readonly upload: FileUpload; readonly etags: ReadonlyMap<number, string> }
  /** These parts are there; the file goes on after the last of them. */
  | {
      readonly state: 'open';
      readonly upload: FileUpload;
      readonly parts: readonly PlannedPart[];
      readonly etags: ReadonlyMap<number, string>;
      readonly nextPartNumber: number;
    }
  /** Nothing that can be gone on with. */
  | { readonly state: 'lost' }
  /** The credentials may not look. */
  | { readonly state: 'hidden' };

/** Attempts begin their part numbers at multiples of this, so that people can tell them apart. */
const numbersPerAttempt = 1_000;

/**
 * Looks what the destination holds of an upload. Parts are confirmed in their order up to the first that has not
 * arrived: a number is planned once, so a part of the planned number and size is the planned part.
 *
 * It must be called after the attempt has begun in the journal: an earlier attempt that still makes the object asked
 * the journal before and had sent all its parts before that, so they are all listed here.
 */
export async function inspectUpload(
  destination: Destination,
  { key, upload_id, upload_token: mark, parts, highest_part_number }: OpenUpload,
  signal: AbortSignal,
): Promise<UploadState> {
  const upload = destination.resumeUpload({ key, upload_id, upload_token: mark });
  const listed = await listParts(upload, signal);
  if (listed === 'hidden') return { state: 'hidden' };
  if (listed === null) {
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    return { state: (await upload.isFinished(bytes, signal)) ? 'finished' : 'lost' };
  }
  const stored = new Map(listed.map((part) => [part.part_number, part]));
  const missing = parts.findIndex((part) => stored.get(part.part_number)?.bytes !== part.bytes);
  const confirmed = missing === -1 ? parts : parts.slice(0, missing);
  const etags = new Map(confirmed.map(({ part_number: n }) => [n, stored.get(n)?.etag ?? '']));
  if (confirmed.at(-1)?.final === true) return { state: 'whole', upload, etags };
  const nextPartNumber = numberAfter(highest_part_number, upload.partNumberMaximum);
  if (nextPartNumber === null) return { state: 'lost' };
  return { state: 'open', upload, parts: confirmed, etags, nextPartNumber };
}

/** The parts of an upload that have arrived; null when it is gone, `hidden` when the credentials may not look. */
export async function listParts(
  upload: FileUpload,
  signal: AbortSignal,
): Promise<Awaited<ReturnType<FileUpload['listParts']>> | 'hidden'> {
  try {
    return await upload.listParts(signal);
  } catch (error) {
    // What keeps it from being listed for good need not keep a new one from being written.
    if (error instanceof DestinationError && !error.transient) return 'hidden';
    throw error;
  }
}

/** Where the next attempt's part numbers begin. Gaps are legal, but not for ever: the second half is used without. */
function numberAfter(highest: number, maximum: number): number | null {
  if (highest === 0) return 1;
  const begin = (Math.floor(highest / numbersPerAttempt) + 1) * numbersPerAttempt;
  if (begin <= maximum / 2) return begin;
  return highest < maximum ? highest + 1 : null;
}
