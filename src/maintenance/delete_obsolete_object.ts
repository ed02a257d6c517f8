import type { ObsoleteObject, Deletion } from '../decisions/obsolete_objects.ts';
import { DestinationError, type Destination } from '../destination/destination.ts';
import { parseManifest } from '../destination/manifest.ts';
import type { ManifestReader } from './location_cache.ts';
import { MissingPermission, withPermission } from './permissions.ts';

/** What an object is removed with. */
export interface RemovalWork {
  readonly destination: Destination;
  readonly manifests: ManifestReader;
  readonly signal: AbortSignal;
}

/** A manifest that nobody should follow stands where readers look: whoever does needs what it names. */
const stillReferenced = (message: string): DestinationError =>
  new DestinationError('StillNamed', message, { transient: true });

/** Whether removing an object failed because a manifest names it, and not because its place failed. */
export const isStillReferenced = (error: unknown): boolean =>
  error instanceof DestinationError && error.type === 'StillNamed';

/** Errors of a place, all with messages for users; others, such as a cancellation, say nothing of it. */
const ofPlace: ReadonlySet<string> = new Set([
  'DestinationError',
  'CommandRejected',
  'ConfigVersionNotFound',
  'SecretUnreadable',
]);

/** Whether an error says something of a place or an object in it. */
export const isLocationError = (error: unknown): error is Error =>
  Error.isError(error) && ofPlace.has(error.name);

/**
 * Removes an object, unless a manifest names it. It is tried until `orphanRetryBudgetMs` after the first try that failed: what
 * lies in a bucket that nobody can reach any more is not tried for ever.
 * @returns that it is gone, or why it stays for good.
 * @throws DestinationError and what opening a destination throws, when it is to be tried again later.
 */
export async function deleteObsoleteObject(
  object: ObsoleteObject,
  open: () => Promise<RemovalWork>,
  giveUpAfterMs: number,
  signal: AbortSignal,
): Promise<Deletion> {
  try {
    const work = await open();
    await removers[object.kind](object, work);
    return { object, deleted: true, reason: null };
  } catch (error) {
    // What was broken off says nothing of the place.
    if (signal.aborted) throw error;
    if (error instanceof MissingPermission) return { object, deleted: false, reason: error.message };
    // With its bucket the object is gone too.
    if (error instanceof DestinationError && error.type === 'NoSuchBucket')
      return { object, deleted: true, reason: error.message };
    const failingForMs = isStillReferenced(error) ? object.failing_for_ms : object.location_failing_for_ms;
    if (!isLocationError(error) || failingForMs === null || failingForMs < giveUpAfterMs) throw error;
    return { object, deleted: false, reason: error.message };
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
  const { key, upload_id, upload_token } = object;
  const { destination, signal } = work;
  if (upload_id === null || upload_token === null) throw new RangeError('An upload has an id and a token.');
  await withPermission('s3:AbortMultipartUpload', () => destination.abortUpload(key, upload_id, signal));
  if (await isMadeOf(destination, { key, upload_token }, signal)) await removeFile(object, work);
}

/** Whether what stands under a key is the file that was made of an upload. */
async function isMadeOf(
  destination: Destination,
  upload: { readonly key: string; readonly upload_token: string },
  signal: AbortSignal,
): Promise<boolean> {
  const isFile = await destination.isFromUpload(upload, signal);
  if (isFile === null) throw new MissingPermission('s3:GetObject');
  return isFile;
}

async function removeFile(
  object: ObsoleteObject,
  { destination, manifests, signal }: RemovalWork,
): Promise<void> {
  const { key, upload_token, publish_claimed } = object;
  const referenceTo = await manifests.referenceTo(object);
  if (referenceTo === 'named')
    throw stillReferenced('A manifest still names a file whose place another generation has taken.');
  // What no run claimed to publish no manifest can name; of the rest it has to be seen.
  if (referenceTo === 'not to be seen' && publish_claimed) throw new MissingPermission('s3:GetObject');
  // Gone, or another export's by now: one that was made after this one's was deleted may write the same keys.
  if (upload_token !== null && !(await isMadeOf(destination, { key, upload_token }, signal))) return;
  await withPermission('s3:DeleteObject', () => destination.deleteObject(key, signal));
}

/** Removes the manifest of a place that the destination has left, unless another run has published there again. */
async function removeManifest(
  object: ObsoleteObject,
  { destination, manifests, signal }: RemovalWork,
): Promise<void> {
  const { key, run_id } = object;
  const seen = await destination.getManifest(key, signal);
  if (seen.state === 'unreadable') throw new MissingPermission('s3:GetObject');
  if (seen.state === 'absent' || parseManifest(seen.text)?.run_id !== run_id) return;
  if (!(await manifests.isSuperseded(object, seen)))
    throw stillReferenced('An older manifest stands where readers look for the one that counts.');
  await withPermission('s3:DeleteObject', () => destination.deleteManifest(key, seen, signal));
}
