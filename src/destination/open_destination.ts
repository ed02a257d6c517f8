import { BoundedMap } from '../concurrency/bounded_map.ts';
import { bounds, boundText } from '../config/bounds.ts';
import type { KeyRing } from '../config/key_ring.ts';
import type { Settings } from '../config/settings.ts';
import type { RunSpec } from '../domain/run_state.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import type { Pool } from '../journal/database.ts';
import {
  type CircuitBreaker,
  DestinationError,
  type ManifestClaim,
  type NewFile,
  type PresentManifest,
  type ProbeWait,
  type UploadReference,
} from './destination.ts';
import { readConfig, readConfigAndTraits } from './config_versions.ts';
import { abortMatchingUploads, abortUpload, createUpload, resumeUpload } from './multipart.ts';
import { circuitOf, createS3Requests, type DestinationContext, probeS3 } from './requests.ts';
import { maxFileBytesOf, parseS3Config, type S3Config } from './config.ts';
import { encodingOf } from './formats.ts';
import {
  type FileIdentity,
  fileKey,
  fileKeyPattern,
  type KeySpec,
  manifestKey,
  rejectedKey,
} from './keys.ts';
import { fileFolder } from './prefix.ts';
import { locationOf } from './bucket_location.ts';
import { readTraits, storeTraits, unknownTraits } from './store_traits.ts';
import { type FolderStore, openFolderStore } from './folder_store.ts';
import { deleteFile, deleteHeldVersion, deleteIfUnchanged, deleteObject } from './delete_object.ts';
import { getManifestObject, hasOwnManifest, putManifestObject } from './manifest_object.ts';
import { findFile, isFromUpload, isTaken } from './object_headers.ts';
import { openObject } from './read_object.ts';
import { putSmallObject, putWholeFile } from './write_object.ts';
import { encryptionOf } from './encryption.ts';

/**
 * The destination of an export, opened with one config version. All methods throw DestinationError; the functions that they
 * call say what they return.
 */
export type Destination = ReturnType<typeof openS3>;

/** Opens the bucket of a config. Sends no request yet. */
export function openS3(config: S3Config, context: DestinationContext) {
  const requests = createS3Requests(config, context);
  const encryption = encryptionOf(config);
  const traits = context.traits ?? unknownTraits;
  const firstPartBytes = context.settings.EXPORTD_S3_PART_SIZE;
  const equalPartBytes = traits.equal_parts === true ? firstPartBytes : null;
  const fileOptions = { ...encryption, firstPartBytes, equalPartBytes };
  const manifestOptions = {
    ...encryption,
    ContentType: 'application/json',
    provesWrites: traits.conditional_put === true && traits.checksums !== false,
    testsConditions: traits.conditional_put === null,
  };
  const folder = fileFolder(config);
  const folders = new Map<string, FolderStore>();
  let takenKeys = 0;
  /** Counts keys that others have: a server that has an object for every key would use up generations without an end. */
  const countTaken = (key: string): void => {
    takenKeys += 1;
    if (takenKeys >= bounds.takenKeys.max)
      throw new DestinationError(
        'KeysTaken',
        `Objects that this run did not write have ${boundText(bounds.takenKeys)} keys of its files, the last of them ${key}. Check what else writes under the prefix, and what serves endpoint_url of the destination.`,
        { transient: true },
      );
  };
  return {
    encoding: encodingOf(config) satisfies EncodingOptions,
    /** Maximum file size in bytes, checked after each block; null is unlimited. */
    maxFileBytes: maxFileBytesOf(config),
    /**
     * Whether keys have a mark, because the store has no conditional writes: an object that a manifest references could
     * otherwise be overwritten.
     */
    marksKeys: traits.conditional_put === false || traits.conditional_complete === false,
    /**
     * Whether a file of one part is written in one request, because the store is known to refuse overwriting; else as a
     * multipart upload.
     */
    writesWholeFiles: traits.conditional_put === true,
    /** The size at which the first part of a file ends, and its upload starts. */
    firstPartBytes,
    /** The size of every part but the last of a new file, if the store requires one size; else null. */
    equalPartBytes,
    fileKey: (spec: KeySpec, file: FileIdentity, extension: string) => fileKey(folder, spec, file, extension),
    /** The columns that the files are partitioned by. */
    partitionColumns: config.partition_by,
    /** The key of the rejected rows of a generation. */
    rejectedKey: (spec: KeySpec, file: Pick<FileIdentity, 'generation' | 'mark'>) =>
      rejectedKey(config, spec, file),
    manifestKey: (spec: KeySpec) => manifestKey(config.prefix, spec),
    /** The full name of an object for messages, e.g. `s3://bucket/key`. */
    nameOf: (key: string) => `s3://${config.bucket_name}/${key}`,
    /** Reads what the objects are. */
    foreign: requests.foreign,
    /** Call it before an upload is created. When the object is unreadable, the store decides once the file is complete. */
    isTaken: async (key: string, signal: AbortSignal) => {
      const taken = await isTaken(requests, key, signal);
      if (taken) countTaken(key);
      return taken;
    },
    createUpload: ({ key, contentType, upload_token, resumable }: NewFile, signal: AbortSignal) =>
      createUpload(
        requests,
        key,
        { ...fileOptions, ContentType: contentType, upload_token, resumable },
        signal,
      ),
    /** Resumes an upload of another attempt. Sends no request yet. */
    resumeUpload: (upload: UploadReference) => resumeUpload(requests, upload, firstPartBytes),
    abortUpload: (key: string, uploadId: string, signal: AbortSignal) =>
      abortUpload(requests, key, uploadId, signal),
    /**
     * Aborts all uploads of a file whose ids are unknown, because the response that contained them was lost. A mark of the
     * file, which may be unknown too, does not matter.
     */
    abortOrphanedUploads: (
      spec: KeySpec,
      file: Omit<FileIdentity, 'mark'>,
      extension: string,
      signal: AbortSignal,
    ) => abortMatchingUploads(requests, fileKeyPattern(folder, spec, file, extension), signal),
    isFromUpload: (upload: Pick<UploadReference, 'key' | 'upload_token'>, signal: AbortSignal) =>
      isFromUpload(requests, upload, signal),
    /** Only if `writesWholeFiles`. */
    putFile: async (file: NewFile, bytes: Buffer, signal: AbortSignal) => {
      const written = await putWholeFile(requests, file, bytes, encryption, signal);
      if (!written) countTaken(file.key);
      return written;
    },
    findFile: (file: Pick<NewFile, 'key' | 'upload_token'>, bytes: number, signal: AbortSignal) =>
      findFile(requests, file, bytes, signal),
    putObject: async (key: string, contentType: string, bytes: Buffer, signal: AbortSignal) => {
      const options = { ...encryption, ContentType: contentType };
      const written = await putSmallObject(requests, key, bytes, options, signal);
      if (!written) countTaken(key);
      return written;
    },
    openObject: (key: string, signal: AbortSignal) => openObject(requests, key, signal),
    deleteObject: (key: string, signal: AbortSignal) => deleteObject(requests, key, signal),
    deleteFile: (upload: Pick<UploadReference, 'key' | 'upload_token'>, signal: AbortSignal) =>
      deleteFile(requests, upload, signal),
    deleteHeldVersion: (key: string, versionId: string, signal: AbortSignal) =>
      deleteHeldVersion(requests, key, versionId, signal),
    putManifest: (key: string, claim: ManifestClaim, signal: AbortSignal) =>
      putManifestObject(requests, key, claim, manifestOptions, signal),
    /** Whether the run, or one whose files it inherited, has written its manifest; true if it cannot be read. */
    hasManifest: (key: string, claim: ManifestClaim, signal: AbortSignal) =>
      hasOwnManifest(requests, key, claim, signal),
    getManifest: (key: string, signal: AbortSignal) => getManifestObject(requests, key, signal),
    /** Deletes a manifest that was read before, unless it has been replaced since. */
    deleteManifest: (key: string, found: PresentManifest, signal: AbortSignal) =>
      deleteIfUnchanged(requests, key, found, signal),
    /** Server and bucket. */
    location: locationOf(config),
    prefix: config.prefix,
    /** What the files are besides, by its name in the config; null for nothing. */
    table_format: config.table_format,
    settings: context.settings,
    /** The store of a folder, without a slash at its end: of what the files are besides. */
    folder: (root: string): FolderStore => {
      const store = folders.get(root) ?? openFolderStore(requests, root, encryption, traits.conditional_put);
      folders.set(root, store);
      return store;
    },
    close: requests.close,
  };
}

/**
 * Opens the destination of a run, with the config version that the run was created with, if it responds.
 * @param waiting how to wait for the probe of a destination that has been silent
 * @throws DestinationError `DestinationUnavailable`
 */
export type OpenDestination = (
  spec: Pick<RunSpec, 'team_id' | 'batch_export_id' | 'config_version'>,
  onError: DestinationContext['onError'],
  waiting?: ProbeWait,
) => Promise<Destination>;

/** How long a store is trusted to refuse overwrites, in milliseconds. Then the next manifest tests it again. */
const traitsMaxAgeMs = 86_400_000;
/** Config versions whose location a process remembers. */
const knownLocations = 10_000;

/** The wait of a caller outside the export slots. */
const plainWait: ProbeWait = { signal: new AbortController().signal };

/**
 * Creates the function that opens destinations from stored configs. Each is opened for one activity and closed at its
 * end.
 * @param circuits without them, no destination is probed
 */
export const createDestinationOpener = (
  pool: Pool,
  keyRing: KeyRing,
  settings: Settings,
  circuits?: CircuitBreaker,
): OpenDestination => {
  /** Where config versions lead to, which are immutable. */
  const locations = new BoundedMap<string, string>(knownLocations);
  return async (spec, onError, waiting = plainWait) => {
    const version = `${spec.batch_export_id}/${spec.config_version}`;
    const known = { team_id: spec.team_id, location: locations.get(version) ?? '' };
    const stored = await readConfigAndTraits(pool, keyRing, spec, {
      ...known,
      checkIntervalMs: traitsMaxAgeMs,
    });
    // Validated again, because settings may have become stricter after the config was stored.
    const config = parseS3Config(stored.config, settings);
    const store = { team_id: spec.team_id, location: locationOf(config) };
    locations.set(version, store.location);
    const circuit = circuitOf(config);
    const [traits] = await Promise.all([
      known.location === store.location
        ? (stored.traits ?? unknownTraits)
        : readTraits(pool, store, traitsMaxAgeMs),
      circuits?.admit(circuit, () => probeS3(config, settings), waiting),
    ]);
    return openS3(config, {
      settings,
      team_id: spec.team_id,
      onError,
      traits,
      onTraits: (found) => storeTraits(pool, store, found),
      ...(circuits && { circuit: circuits.reporter(circuit) }),
    });
  };
};

/** The location of objects of an export: the config version that they were written with. */
type ObjectLocation = Pick<RunSpec, 'team_id' | 'batch_export_id' | 'config_version'>;

/**
 * Opens the location of objects that were written with an older config, if it responds.
 * @throws DestinationError `DestinationUnavailable`
 */
export type OpenLocation = (location: ObjectLocation) => Promise<Destination>;

/**
 * Creates the function that opens locations.
 * @param options `retryBudgetMs`: how long a failed request is retried; `circuits`: without them, no location is probed
 */
export const createLocationOpener = (
  pool: Pool,
  keyRing: KeyRing,
  settings: Settings,
  {
    retryBudgetMs = 0,
    circuits,
  }: { readonly retryBudgetMs?: number; readonly circuits?: CircuitBreaker } = {},
): OpenLocation => {
  const withRetryBudget = { ...settings, EXPORTD_S3_RETRY_BUDGET: retryBudgetMs };
  return async ({ team_id, batch_export_id, config_version }) => {
    const stored = await readConfig(pool, keyRing, batch_export_id, config_version);
    const config = parseS3Config(stored.config, settings);
    const circuit = circuitOf(config);
    const { signal } = new AbortController();
    await circuits?.admit(circuit, () => probeS3(config, settings), { signal });
    return openS3(config, {
      settings: withRetryBudget,
      team_id,
      onError: () => undefined,
      ...(circuits && { circuit: circuits.reporter(circuit) }),
    });
  };
};
