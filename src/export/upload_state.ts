import { DestinationError, type Destination, type FileUpload } from '../destination/destination.ts';
import type { OpenUpload, PlannedPart } from '../domain/run.ts';

/** What the destination holds of an upload that an earlier attempt recorded. */
export type UploadState =
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
 * Inspects what the destination holds of an upload. Parts are confirmed in order, up to the first one that is missing. A
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
