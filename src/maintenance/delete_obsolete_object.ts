import type { Deletion, ObsoleteObject } from '../decisions/obsolete_objects.ts';
import { DestinationError } from '../destination/destination.ts';
import type { Destination } from '../destination/open_destination.ts';
import { parseManifest } from '../destination/manifest.ts';
import { classifyError } from '../failures/classify_error.ts';
import type { ManifestReader } from './manifest_reader.ts';
import { MissingPermission, withPermission } from './permissions.ts';

/** Context of a deletion, with its location opened. */
export interface DeletionContext {
  readonly location: Destination;
  readonly manifests: ManifestReader;
  readonly signal: AbortSignal;
}

/** A manifest still refers to an obsolete object, so readers need it. */
const stillReferenced = (message: string): DestinationError =>
  new DestinationError('StillReferenced', message, { transient: true });

/** Whether a deletion failed because of a manifest, and not because of its location. */
export const isStillReferenced = (error: unknown): boolean =>
  error instanceof DestinationError && error.type === 'StillReferenced';

/** Errors that concern a location; their messages are for users. Others, such as a cancellation, do not count. */
const locationErrors: ReadonlySet<string> = new Set(['DestinationError', 'CommandRejected']);

/**
 * Whether an error concerns a location or an object in it. An operator's fault, such as a missing key, does not: no object
 * is given up because of it.
 */
export const isLocationError = (error: unknown): error is Error =>
  Error.isError(error) && locationErrors.has(error.name) && classifyError(error).owner !== 'operator';

/**
 * Deletes an object, unless a manifest refers to it. The object stays permanently when a permission is missing, or when
 * deletions have failed for longer than `retryBudgetMs`: its bucket may never be reachable again.
 * @throws DestinationError, or an error of opening the location, when the deletion is to be retried later
 */
export async function deleteObsoleteObject(
  object: ObsoleteObject,
  open: () => Promise<DeletionContext>,
  retryBudgetMs: number,
  signal: AbortSignal,
): Promise<Deletion> {
  try {
    const context = await open();
    await deleteByKind[object.object_type](object, context);
    return { object, deleted: true, reason: null };
  } catch (error) {
    // An interrupted deletion proves nothing about its location.
    if (signal.aborted) throw error;
    if (error instanceof MissingPermission) return { object, deleted: false, reason: error.message };
    // The object was deleted with its bucket.
    if (error instanceof DestinationError && error.type === 'NoSuchBucket')
      return { object, deleted: true, reason: error.message };
    const failingForMs = isStillReferenced(error) ? object.failing_for_ms : object.location_failing_for_ms;
    if (!isLocationError(error) || failingForMs === null || failingForMs < retryBudgetMs) throw error;
    return { object, deleted: false, reason: error.message };
  }
}

const deleteByKind: Readonly<
  Record<ObsoleteObject['object_type'], (object: ObsoleteObject, context: DeletionContext) => Promise<void>>
> = {
  upload: deleteUpload,
  file: deleteFile,
  manifest: deleteManifest,
};

/** Aborts an upload, or deletes its file if a superseded attempt has completed it meanwhile. */
async function deleteUpload(object: ObsoleteObject, context: DeletionContext): Promise<void> {
  const { key, upload_id, upload_token } = object;
  const { location, signal } = context;
  if (upload_token === null) throw new RangeError('An upload has a token.');
  // The file was sent in one request, which may have arrived although its response was lost.
  if (upload_id === null) return deleteFile(object, context);
  await withPermission('s3:AbortMultipartUpload', () => location.abortUpload(key, upload_id, signal));
  // Absent or unreadable is taken as absent: an aborted upload has no file, unless a zombie was faster.
  if ((await location.isFromUpload({ key, upload_token }, signal)) === true)
    await deleteFile(object, context);
}

/** Whether the file of an upload still exists. @throws MissingPermission when that cannot be read */
async function isFromUpload(
  object: ObsoleteObject,
  upload_token: string,
  { location, manifests, signal }: DeletionContext,
): Promise<boolean> {
  const isFile = await location.isFromUpload({ key: object.key, upload_token }, signal);
  if (isFile === null && !(await manifests.canRead(object))) throw new MissingPermission('s3:GetObject');
  return isFile === true;
}

async function deleteFile(object: ObsoleteObject, context: DeletionContext): Promise<void> {
  const { location, manifests, signal } = context;
  const { key, upload_token, publish_claimed } = object;
  const reference = await manifests.referenceTo(object);
  if (reference === 'referenced')
    throw stillReferenced('A manifest still refers to a file that a newer generation has replaced.');
  // A manifest can only refer to the files of a run that claimed publishing.
  if (reference === 'unreadable' && publish_claimed) throw new MissingPermission('s3:GetObject');
  // Another export may own the key by now: one created after this export was deleted may write the same keys.
  if (upload_token !== null && !(await isFromUpload(object, upload_token, context))) return;
  await withPermission('s3:DeleteObject', () => location.deleteObject(key, signal));
}

/** Deletes a manifest at a location that the export has left, unless another run has published there again. */
async function deleteManifest(
  object: ObsoleteObject,
  { location, manifests, signal }: DeletionContext,
): Promise<void> {
  const { key, run_id } = object;
  const found = await location.getManifest(key, signal);
  if (found.state === 'unreadable') throw new MissingPermission('s3:GetObject');
  if (found.state === 'absent' || parseManifest(found.text)?.run_id !== run_id) return;
  if (!(await manifests.isSuperseded(object, found)))
    throw stillReferenced('An obsolete manifest is at the location of the current one.');
  await withPermission('s3:DeleteObject', () => location.deleteManifest(key, found, signal));
}
