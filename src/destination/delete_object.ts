/** Deletes objects, and in versioned buckets their versions, which object lock may retain. */
import { DeleteObjectCommand, GetObjectRetentionCommand } from '@aws-sdk/client-s3';
import { DestinationError, type PresentManifest } from './destination.ts';
import { conditionFailureCodes, isErrorType } from './errors.ts';
import { type FileReference, headObject, tokenOf } from './object_headers.ts';
import { type S3Requests, sendCommand } from './requests.ts';

/**
 * What a deletion leaves in the bucket: a versioned one may keep the object behind a delete marker; `locked_until`: object lock
 * keeps this version, until the end of this day (`2026-11-27`, UTC), so that objects of one day have one reason.
 */
export type DeletionResult = 'deleted' | 'version_stays' | LockedVersion;

interface LockedVersion {
  readonly version_id: string;
  readonly locked_until: string;
}

/** Versions of one key that a deletion deletes. A file is written once, so it has one, or one more after a lost response. */
const maxVersions = 10;

/**
 * Deletes an object, in a versioned bucket with its versions. Without the permission for that, or while object lock retains
 * them, a delete marker hides the object. S3's response does not depend on whether it existed.
 */
export async function deleteObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<DeletionResult> {
  let locked: LockedVersion | undefined;
  for (let deleted = 0; deleted < maxVersions; deleted += 1) {
    const found =
      requests.isVersioned() || deleted > 0 ? await headObject(requests, key, signal) : 'unreadable';
    if (found === 'absent') return 'deleted';
    if (found === 'unreadable' || found.VersionId === undefined) break;
    if (await deleteVersion(requests, key, found.VersionId, signal)) continue;
    locked = await lockOf(requests, key, found.VersionId, signal);
    break;
  }
  const { DeleteMarker } = await sendCommand(
    requests,
    DeleteObjectCommand,
    { Bucket: requests.bucket, Key: key },
    signal,
  );
  if (DeleteMarker !== true) return 'deleted';
  return locked ?? 'version_stays';
}

/**
 * Deletes the object of an upload, in a versioned bucket with its versions, and no other object that has the key by now:
 * another export may have written it since. Servers without conditional deletes leave the time between two requests for that.
 * @returns `unreadable` when the object is, and so may be absent
 */
export async function deleteFile(
  requests: S3Requests,
  { key, upload_token }: FileReference,
  signal: AbortSignal,
): Promise<DeletionResult | 'unreadable'> {
  for (let deleted = 0; ; deleted += 1) {
    const found = await headObject(requests, key, signal);
    if (found === 'unreadable' && deleted === 0) return 'unreadable';
    if (typeof found === 'string' || tokenOf(found) !== upload_token) return 'deleted';
    const { ETag: etag = '*', VersionId: version_id } = found;
    const isKept = version_id !== undefined && version_id !== 'null';
    if (isKept && deleted < maxVersions && (await deleteVersion(requests, key, version_id, signal))) continue;
    return deleteIfUnchanged(requests, key, { etag, version_id }, signal);
  }
}

/** Deletes a version that object lock kept, once its time is over. */
export const deleteHeldVersion = async (
  requests: S3Requests,
  key: string,
  versionId: string,
  signal: AbortSignal,
): Promise<DeletionResult> =>
  (await deleteVersion(requests, key, versionId, signal))
    ? 'deleted'
    : ((await lockOf(requests, key, versionId, signal)) ?? 'version_stays');

/** Deletes a version of an object for good. @returns false when that is denied, also by object lock */
export async function deleteVersion(
  requests: S3Requests,
  key: string,
  VersionId: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await sendCommand(
      requests,
      DeleteObjectCommand,
      { Bucket: requests.bucket, Key: key, VersionId },
      signal,
    );
    return true;
  } catch (error) {
    if (isErrorType(error, 'AccessDenied', ...lockedCodes)) return false;
    throw error;
  }
}

/** Longer than the clocks of exportd and a store differ, and than a response takes. */
const lapsedLockMs = 86_400_000;

/**
 * Until when object lock retains a version whose deletion was denied, if it does and the credentials may read that
 * (s3:GetObjectRetention). A date that is just over counts until the end of this day: it may have denied the deletion, by the
 * store's clock. A legal hold has no date.
 */
async function lockOf(
  requests: S3Requests,
  key: string,
  VersionId: string,
  signal: AbortSignal,
): Promise<LockedVersion | undefined> {
  const input = { Bucket: requests.bucket, Key: key, VersionId };
  try {
    const { Retention } = await sendCommand(requests, GetObjectRetentionCommand, input, signal);
    const until = Retention?.RetainUntilDate;
    if (!until || until.getTime() <= Date.now() - lapsedLockMs) return undefined;
    const lockedUntil = new Date(Math.max(until.getTime(), Date.now()));
    return { version_id: VersionId, locked_until: lockedUntil.toISOString().slice(0, 'YYYY-MM-DD'.length) };
  } catch (error) {
    if (error instanceof DestinationError) return undefined;
    throw error;
  }
}

/** What stores respond when object lock retains a version. */
const lockedCodes = ['ObjectLocked', 'InvalidRequest', 'MethodNotAllowed'];

/**
 * Deletes an object if it is the one that was read, with this version of it. Servers without conditional deletes delete any object.
 */
export async function deleteIfUnchanged(
  requests: S3Requests,
  key: string,
  { etag, version_id }: Pick<PresentManifest, 'etag' | 'version_id'>,
  signal: AbortSignal,
): Promise<DeletionResult> {
  const input = { Bucket: requests.bucket, Key: key };
  const deleteWith = async (conditions: { IfMatch?: string }): Promise<DeletionResult> => {
    const { DeleteMarker } = await sendCommand(
      requests,
      DeleteObjectCommand,
      { ...input, ...conditions },
      signal,
    );
    if (DeleteMarker !== true) return 'deleted';
    // A bucket that keeps versions no longer has deleted this one.
    if (version_id === 'null') return 'deleted';
    return version_id === undefined ? 'version_stays' : deleteHeldVersion(requests, key, version_id, signal);
  };
  try {
    return await deleteWith({ IfMatch: etag });
  } catch (error) {
    if (!(error instanceof DestinationError)) throw error;
    if (error.type === 'NotImplemented') return deleteWith({});
    if (!conditionFailureCodes.has(error.type) && !isErrorType(error, 'NoSuchKey', 'NotFound')) throw error;
    return 'deleted';
  }
}
