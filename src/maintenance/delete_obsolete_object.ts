import { bounds } from '../config/bounds.ts';
import type { Deletion, ObsoleteObject } from '../decisions/due_maintenance.ts';
import type { DeletionResult } from '../destination/delete_object.ts';
import { DestinationError, type ManifestState, type PresentManifest } from '../destination/destination.ts';
import { isErrorType } from '../destination/errors.ts';
import type { Destination, OpenLocation } from '../destination/open_destination.ts';
import { parseStoredManifest } from '../destination/stored_manifest.ts';
import type { HeldVersion } from '../domain/comparison.ts';
import type { FileKeeper } from '../export/publish_target.ts';
import { classifyError } from '../failures/classify_error.ts';
import { dayMs } from '../domain/intervals.ts';

/** The credentials lack a permission in the bucket, for good or because the bucket cannot be written for a while. */
const missingPermission = (permission: string): DestinationError =>
  new DestinationError(
    'MissingPermission',
    `The credentials of the destination lack the permission ${permission}.`,
    { transient: false },
  );

/** Sends a request that needs a permission. @throws DestinationError `MissingPermission` when the request is denied */
async function withPermission<Result>(permission: string, request: () => Promise<Result>): Promise<Result> {
  try {
    return await request();
  } catch (error) {
    throw isErrorType(error, 'AccessDenied') ? missingPermission(permission) : error;
  }
}

/** The locations of an export's objects, each opened once. */
export interface LocationCache {
  /** The location that a config version wrote to. One that could not be opened is not retried. */
  of(object: ObsoleteObject, configVersion: number): Promise<Destination>;
  close(): Promise<void>;
}

/** Opens the locations of one export on first use. */
export function createLocationCache(openLocation: OpenLocation): LocationCache {
  const locations = new Map<number, Promise<Destination>>();
  return {
    of: ({ team_id, batch_export_id }, config_version) => {
      const known = locations.get(config_version);
      if (known) return known;
      const opening = openLocation({ team_id, batch_export_id, config_version });
      // The caller handles the rejection; a cached promise without a handler would be reported as unhandled.
      opening.catch(() => undefined);
      locations.set(config_version, opening);
      return opening;
    },
    close: async () => {
      const opened = await Promise.allSettled(locations.values());
      for (const location of opened) if (location.status === 'fulfilled') location.value.close();
    },
  };
}

/** Reads the manifests of one interval, each once, right before its files are deleted. */
interface ManifestReader {
  /**
   * Whether the credentials of the object's location may read objects, as far as the manifest there proves it. An object
   * that they may not read is then absent.
   */
  canRead(object: ObsoleteObject): Promise<boolean>;
  /** Checks the current manifest of the interval, and the one at the location of the object. */
  referenceTo(object: ObsoleteObject): Promise<'referenced' | 'unreferenced' | 'unreadable'>;
  /**
   * Whether the interval's current manifest differs from `found`, which exists at the key of `manifest`. The keys alone
   * do not tell, since two configs may write to one location.
   */
  isSuperseded(manifest: ObsoleteObject, found: PresentManifest): Promise<boolean>;
}

/**
 * The current manifest is the one of the newest Completed run. A manifest that an older config left at another location
 * still serves readers of that location, as long as it exists.
 */
export function createManifestReader(locations: LocationCache, signal: AbortSignal): ManifestReader {
  const read = new Map<string, Promise<ManifestState>>();
  let length = 0;
  /** Memory holds the texts of few manifests. Others are read again. */
  const forget = (found: ManifestState): ManifestState => {
    length += found.state === 'present' ? found.text.length : 0;
    if (length > bounds.manifest.max) {
      read.clear();
      length = 0;
    }
    return found;
  };
  const getManifest = async (
    object: ObsoleteObject,
    configVersion: number,
    key?: string,
  ): Promise<ManifestState> => {
    const location = await locations.of(object, configVersion);
    const manifestKey = key ?? location.manifestKey(object);
    const name = `${configVersion}/${manifestKey}`;
    const reading = read.get(name) ?? location.getManifest(manifestKey, signal).then(forget);
    read.set(name, reading);
    return reading;
  };
  return {
    canRead: async (object) => (await getManifest(object, object.config_version)).state === 'present',
    referenceTo: async (object) => {
      const { config_version, current_key, current_config_version } = object;
      const manifests = [await getManifest(object, config_version)];
      if (current_key !== null && current_config_version !== null)
        manifests.push(await getManifest(object, current_config_version, current_key));
      if (manifests.some((manifest) => manifest.state === 'present' && refersTo(manifest.text, object.key)))
        return 'referenced';
      return manifests.some(({ state }) => state === 'unreadable') ? 'unreadable' : 'unreferenced';
    },
    isSuperseded: async (manifest, found) => {
      const { key, current_key, current_config_version } = manifest;
      if (current_key === null || current_config_version === null) return false;
      if (current_key !== key) return true;
      const current = await getManifest(manifest, current_config_version, current_key);
      return current.state === 'present' && current.text !== found.text;
    },
  };
}

/** Searches the text instead of parsing it, which also works for manifests of later versions or written by people. */
const refersTo = (manifest: string, key: string): boolean => manifest.includes(JSON.stringify(key));

/** Context of a deletion, with its location opened. */
export interface DeletionContext {
  readonly location: Destination;
  /** Whether exportd can have written a file of the interval. */
  readonly isOwn: (object: ObsoleteObject) => boolean;
  readonly manifests: ManifestReader;
  readonly keepers: readonly FileKeeper[];
  readonly signal: AbortSignal;
}

/** A manifest that names the object was published, although its run was cancelled with the export. */
class Published extends Error {
  override readonly name = 'Published';
  constructor() {
    super('The manifest of the interval names it: it was published while the batch export was deleted.');
  }
}

/** The journal names an object that exportd cannot have written: no version deletes it. */
class NotOwn extends Error {
  override readonly name = 'NotOwn';
  constructor() {
    super('exportd cannot have written an object with this key for its interval, so it does not delete it.');
  }
}

/** The bucket keeps what was deleted. */
class VersionStays extends Error {
  override readonly name = 'VersionStays';
  readonly held: HeldVersion | undefined;
  constructor(locked?: Exclude<DeletionResult, string>) {
    super(
      locked === undefined
        ? 'The bucket keeps versions: a delete marker hides the object, and its version stays with all its rows. To delete it too, grant the credentials s3:DeleteObjectVersion before exportd deletes, or add a lifecycle rule for noncurrent versions; object lock keeps it until its retention ends.'
        : `Object lock keeps the object until ${locked.locked_until}: a delete marker hides it, and its version stays with all its rows. exportd deletes the version after that day.`,
    );
    this.held = locked && {
      version_id: locked.version_id,
      until: new Date(Date.parse(locked.locked_until) + dayMs).toISOString(),
    };
  }
}

/** @throws VersionStays */
function requireDeleted(result: DeletionResult): void {
  if (result === 'version_stays') throw new VersionStays();
  if (result !== 'deleted') throw new VersionStays(result);
}

/** A manifest still refers to an obsolete object, so readers need it. */
const stillReferenced = (message: string): DestinationError =>
  new DestinationError('StillReferenced', message, { transient: true });

/** Whether a deletion failed because of its object, and others at its location may succeed. */
export const isAboutObject = (error: unknown): boolean =>
  isErrorType(error, 'StillReferenced', 'MissingPermission');

/** Errors that concern a location; their messages are for users. Others, such as a cancellation, do not count. */
const locationErrors: ReadonlySet<string> = new Set(['DestinationError', 'CommandRejected']);

/**
 * Whether an error concerns a location or an object in it. An operator's fault, such as a missing key, does not: no object
 * is given up because of it.
 */
export const isLocationError = (error: unknown): error is Error =>
  error instanceof Error && locationErrors.has(error.name) && classifyError(error).owner !== 'operator';

/**
 * Deletes an object, unless a manifest refers to it. The object stays permanently when the bucket keeps its version, or when
 * deletions have failed for longer than `retryBudgetMs`: its bucket may never be reachable or writable again.
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
    await (object.held_version === null ? deleteByKind[object.object_type] : deleteHeld)(object, context);
    return { object, deleted: true, reason: null };
  } catch (error) {
    // An interrupted deletion proves nothing about its location.
    if (signal.aborted) throw error;
    if (error instanceof VersionStays)
      return { object, deleted: false, reason: error.message, held: error.held };
    if (error instanceof Published || error instanceof NotOwn)
      return { object, deleted: false, reason: error.message };
    // Nothing leads to the object any more.
    if (isErrorType(error, 'SecretsRemoved')) return { object, deleted: false, reason: error.message };
    // The object was deleted with its bucket.
    if (isErrorType(error, 'NoSuchBucket')) return { object, deleted: true, reason: error.message };
    const failingForMs = isAboutObject(error) ? object.failing_for_ms : object.location_failing_for_ms;
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

/** Deletes what object lock has kept. A delete marker hides it, so nothing refers to it. */
async function deleteHeld(
  { key, held_version }: ObsoleteObject,
  { location, signal }: DeletionContext,
): Promise<void> {
  requireDeleted(
    await withPermission('s3:DeleteObjectVersion', () =>
      location.deleteHeldVersion(key, held_version ?? '', signal),
    ),
  );
}

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

async function deleteFile(object: ObsoleteObject, context: DeletionContext): Promise<void> {
  const { location, isOwn, manifests, keepers, signal } = context;
  const { key, upload_token, publish_claimed } = object;
  if (!isOwn(object)) throw new NotOwn();
  const reference = await manifests.referenceTo(object);
  // Its run was publishing when the export was deleted, and has succeeded. The file stays for the readers of the manifest.
  if (reference === 'referenced' && object.export_deleted) throw new Published();
  if (reference === 'referenced')
    throw stillReferenced('A manifest still refers to a file that a newer generation has replaced.');
  if (publish_claimed)
    for (const keeper of keepers) {
      const reason = await keeper(object, location);
      if (reason !== null) throw stillReferenced(reason);
    }
  // A manifest can only refer to the files of a run that claimed publishing.
  if (reference === 'unreadable' && publish_claimed) throw missingPermission('s3:GetObject');
  const result = await withPermission('s3:DeleteObject', () =>
    upload_token === null
      ? location.deleteObject(key, signal)
      : // Another export may own the key by now: one created after this export was deleted may write the same keys.
        location.deleteFile({ key, upload_token }, signal),
  );
  if (result !== 'unreadable') requireDeleted(result);
  else if (!(await manifests.canRead(object))) throw missingPermission('s3:GetObject');
}

/** Deletes a manifest at a location that the export has left, unless another run has published there again. */
async function deleteManifest(
  object: ObsoleteObject,
  { location, manifests, signal }: DeletionContext,
): Promise<void> {
  const { key, run_id } = object;
  const found = await location.getManifest(key, signal);
  if (found.state === 'unreadable') throw missingPermission('s3:GetObject');
  if (found.state === 'absent') return;
  if ((await parseStoredManifest(found.text, location.foreign))?.run_id !== run_id) return;
  if (!(await manifests.isSuperseded(object, found)))
    throw stillReferenced('An obsolete manifest is at the location of the current one.');
  requireDeleted(await withPermission('s3:DeleteObject', () => location.deleteManifest(key, found, signal)));
}
