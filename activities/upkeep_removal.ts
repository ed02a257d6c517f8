import type { ObsoleteObject, Removal } from '../src/decisions/upkeep_objects.ts';
import { DestinationFault, type Destination } from '../src/destination/destination.ts';
import { parseManifest } from '../src/destination/manifest.ts';
import type { ManifestReader } from './upkeep_places.ts';
import { RightMissing, withRight } from './upkeep_rights.ts';

/** What an object is removed with. */
export interface RemovalWork {
  readonly destination: Destination;
  readonly manifests: ManifestReader;
  readonly signal: AbortSignal;
}

/** A manifest that nobody should follow stands where readers look: whoever does needs what it names. */
const stillNamed = (message: string): DestinationFault =>
  new DestinationFault('StillNamed', message, { transient: true });

/** Whether removing an object failed because a manifest names it, and not because its place failed. */
export const isStillNamed = (error: unknown): boolean =>
  error instanceof DestinationFault && error.type === 'StillNamed';

/** Errors of a place, all with messages for users; others, such as a cancellation, say nothing of it. */
const ofPlace: ReadonlySet<string> = new Set([
  'DestinationFault',
  'CommandRefused',
  'ConfigMissing',
  'SecretUnreadable',
]);

/** Whether an error says something of a place or an object in it. */
export const isOfPlace = (error: unknown): error is Error => Error.isError(error) && ofPlace.has(error.name);

/**
 * Removes an object, unless a manifest names it. It is tried until `giveUpAfterMs` after the first try that failed: what
 * lies in a bucket that nobody can reach any more is not tried for ever.
 * @returns that it is gone, or why it stays for good.
 * @throws DestinationFault and what opening a destination throws, when it is to be tried again later.
 */
export async function removeObject(
  object: ObsoleteObject,
  open: () => Promise<RemovalWork>,
  giveUpAfterMs: number,
  signal: AbortSignal,
): Promise<Removal> {
  try {
    const work = await open();
    await removers[object.kind](object, work);
    return { object, removed: true, reason: null };
  } catch (error) {
    // What was broken off says nothing of the place.
    if (signal.aborted) throw error;
    if (error instanceof RightMissing) return { object, removed: false, reason: error.message };
    // With its bucket the object is gone too.
    if (error instanceof DestinationFault && error.type === 'NoSuchBucket')
      return { object, removed: true, reason: error.message };
    const failingForMs = isStillNamed(error) ? object.failing_for_ms : object.place_failing_for_ms;
    if (!isOfPlace(error) || failingForMs === null || failingForMs < giveUpAfterMs) throw error;
    return { object, removed: false, reason: error.message };
  }
}

type Remover = (object: ObsoleteObject, work: RemovalWork) => Promise<void>;

const removers: Readonly<Record<ObsoleteObject['kind'], Remover>> = {
  upload: removeUpload,
  file: removeFile,
  manifest: removeManifest,
};

/** Throws an upload away, or the file that an attempt which did not know of its end has made of it in the meantime. */
async function removeUpload(object: ObsoleteObject, work: RemovalWork): Promise<void> {
  const { key, upload_id, mark } = object;
  const { destination, signal } = work;
  if (upload_id === null || mark === null) throw new RangeError('An upload has an id and a mark.');
  await withRight('s3:AbortMultipartUpload', () => destination.abandonFile(key, upload_id, signal));
  if (await isMadeOf(destination, { key, mark }, signal)) await removeFile(object, work);
}

/** Whether what stands under a key is the file that was made of an upload. */
async function isMadeOf(
  destination: Destination,
  upload: { readonly key: string; readonly mark: string },
  signal: AbortSignal,
): Promise<boolean> {
  const isFile = await destination.isMadeOf(upload, signal);
  if (isFile === null) throw new RightMissing('s3:GetObject');
  return isFile;
}

async function removeFile(
  object: ObsoleteObject,
  { destination, manifests, signal }: RemovalWork,
): Promise<void> {
  const { key, mark, claimed } = object;
  const naming = await manifests.naming(object);
  if (naming === 'named')
    throw stillNamed('A manifest still names a file whose place another generation has taken.');
  // What no run claimed to publish no manifest can name; of the rest it has to be seen.
  if (naming === 'not to be seen' && claimed) throw new RightMissing('s3:GetObject');
  // Gone, or another export's by now: one that was made after this one's was deleted may write the same keys.
  if (mark !== null && !(await isMadeOf(destination, { key, mark }, signal))) return;
  await withRight('s3:DeleteObject', () => destination.deleteObject(key, signal));
}

/** Removes the manifest of a place that the destination has left, unless another run has published there again. */
async function removeManifest(
  object: ObsoleteObject,
  { destination, manifests, signal }: RemovalWork,
): Promise<void> {
  const { key, run_id } = object;
  const seen = await destination.lookAtManifest(key, signal);
  if (seen.state === 'unreadable') throw new RightMissing('s3:GetObject');
  if (seen.state === 'absent' || parseManifest(seen.text)?.run_id !== run_id) return;
  if (!(await manifests.isLeft(object, seen)))
    throw stillNamed('An older manifest stands where readers look for the one that counts.');
  await withRight('s3:DeleteObject', () => destination.deleteManifest(key, seen, signal));
}
