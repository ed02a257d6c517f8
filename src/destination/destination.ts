import type { ErrorOwner } from '../domain/errors.ts';
import type { RunSpec } from '../domain/run.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import type { Manifest } from './manifest.ts';

/** A part that the destination has acknowledged; required to complete the file. */
export interface UploadedPart {
  readonly part_number: number;
  readonly etag: string;
}

/** A part as listed by the destination. */
export interface StoredPart extends UploadedPart {
  readonly bytes: number;
}

/** An object that was written. */
export interface WrittenObject {
  /** When a lifecycle rule of the bucket deletes it, as its server responded; ISO 8601, null without a rule. */
  readonly expires_at: string | null;
}

/** A file that is to be written. */
export interface NewFile {
  readonly key: string;
  readonly contentType: string;
  /** Stored with the object, to distinguish the file from others with the same key and size. */
  readonly upload_token: string;
  /** Whether another attempt can continue the file after its last part; true by default. */
  readonly resumable?: boolean;
}

/** Identifies an upload, so that another attempt can resume it. */
export interface UploadReference {
  readonly key: string;
  readonly upload_id: string;
  /** Distinguishes the completed file from other files with the same key and size. */
  readonly upload_token: string;
  /** The size of every part but the last, if the destination requires one size; else null. */
  readonly part_bytes: number | null;
}

/** A multipart upload of a file. Readers see nothing of it before `complete`. */
export interface FileUpload extends UploadReference {
  /** The highest allowed part number. */
  readonly maxPartNumber: number;
  /**
   * The size of a part in bytes. `position` counts the parts of the file from 1, without gaps. A part may be larger,
   * unless all have one size.
   */
  partBytes(position: number): number;
  /** Lists the uploaded parts by number; null when the upload no longer exists, because it was completed or aborted. */
  listParts(signal: AbortSignal): Promise<readonly StoredPart[] | null>;
  /**
   * The completed file, if it exists, was created by this upload and has `bytes` bytes; null otherwise, and when the
   * credentials may not read it.
   */
  findCompleted(bytes: number, signal: AbortSignal): Promise<WrittenObject | null>;
  /** Uploads a part. Calls may overlap. */
  putPart(partNumber: number, bytes: Buffer, signal: AbortSignal): Promise<UploadedPart>;
  /**
   * Completes the upload, which makes the file visible. `bytes` is the total size of its parts. Safe to repeat after
   * a lost response.
   * @throws DestinationError `UploadNotFound` when neither the upload nor the file exists: export the file again.
   * `PartsRefused` when the store refuses the sizes of the parts: transient if another file can have parts of one size
   */
  complete(parts: readonly UploadedPart[], bytes: number, signal: AbortSignal): Promise<WrittenObject>;
}

/** Identifies a file of an interval. */
export interface FileIdentity {
  /** The generation: how often the interval was exported, from 1. */
  readonly generation: number;
  /** The range of the interval, from 0, if several are exported in parallel; else null. */
  readonly range: number | null;
  /** The number of the file, from 0, if files have a maximum size; else null. */
  readonly file: number | null;
  /** Makes the key unique where the store has no conditional writes; else null. */
  readonly mark: string | null;
}

/** The fields of a run that determine the keys of its interval. */
export type KeySpec = Pick<
  RunSpec,
  'batch_export_id' | 'model' | 'data_interval_start' | 'data_interval_end'
>;

/** The object under the key of a manifest, which may be anything. */
export interface PresentManifest {
  readonly state: 'present';
  readonly etag: string | undefined;
  readonly text: string;
  readonly expires_at: string | null;
}

/**
 * An object that is being read. `chunks` can be read once; it throws DestinationError, `ObjectReplaced` when the
 * object changed.
 */
export interface OpenObject {
  readonly bytes: number;
  readonly etag: string | undefined;
  readonly chunks: AsyncIterable<Buffer>;
}

/** What is stored under the key of an interval's manifest. */
export type ManifestState =
  | { readonly state: 'absent' }
  /** Absent or unreadable: without s3:ListBucket, a server denies reading a key that is missing. */
  | { readonly state: 'unreadable' }
  | PresentManifest;

/** What identifies a manifest before its publishing is claimed. */
export type ManifestIdentity = Pick<Manifest, 'run_id' | 'generation'> & {
  readonly files: readonly Pick<Manifest['files'][number], 'key'>[];
};

/** A manifest that is to be written. */
export interface ManifestPublication {
  readonly identity: ManifestIdentity;
  /** The manifest, if publishing was claimed before: an attempt may have written it. Else null. */
  readonly claimed: Manifest | null;
  /** Claims publishing, so that the run cannot be cancelled any more, and returns the manifest. Called once. */
  claim(): Promise<Manifest>;
  /** Withdraws the claim, because the manifest was not sent. */
  withdraw(): Promise<void>;
}

/** The manifests of an interval that the journal knows. */
export interface KnownManifests {
  /** Whether the journal knows the run that wrote a manifest, so that it may be replaced. */
  isKnown(found: Manifest): Promise<boolean>;
  /** Whether the journal knows a run that may have written a manifest before. */
  mayExist(): Promise<boolean>;
  /**
   * Whether there should be none, and the store has just written a file of the run, so that it responds: then a store that
   * refuses to overwrite need not be asked first.
   */
  expectsNone(): Promise<boolean>;
}

/** The destination of an export, opened with one config version. All methods throw DestinationError. */
export interface Destination {
  /** Encoding options of the files. */
  readonly encoding: EncodingOptions;
  /** Maximum file size in bytes, checked after each block; null is unlimited. */
  readonly maxFileBytes: number | null;
  /**
   * Whether keys have a mark, because the store has no conditional writes: an object that a manifest references could
   * otherwise be overwritten.
   */
  readonly marksKeys: boolean;
  /**
   * Whether a file of one part is written in one request, because the store is known to refuse overwriting; else as a
   * multipart upload.
   */
  readonly writesWholeFiles: boolean;
  /** The size at which the first part of a file ends, and its upload starts. */
  readonly firstPartBytes: number;
  /** The size of every part but the last of a new file, if the store requires one size; else null. */
  readonly equalPartBytes: number | null;
  fileKey(spec: RunSpec, file: FileIdentity, extension: string): string;
  /** The key of the rejected rows of a generation. */
  rejectedKey(spec: RunSpec, file: Pick<FileIdentity, 'generation' | 'mark'>): string;
  manifestKey(spec: KeySpec): string;
  /** The full name of an object for messages, e.g. `s3://bucket/key`. */
  nameOf(key: string): string;
  /**
   * Whether an object has this key. False when it cannot be read: then the store decides when the file is complete.
   * Call it before an upload is created.
   */
  isTaken(key: string, signal: AbortSignal): Promise<boolean>;
  createUpload(file: NewFile, signal: AbortSignal): Promise<FileUpload>;
  /**
   * Writes a file in one request, if `writesWholeFiles`. Safe to repeat after a lost response.
   * @returns null when another object has its key
   */
  putFile(file: NewFile, bytes: Buffer, signal: AbortSignal): Promise<WrittenObject | null>;
  /** The file if it was written with this token and has `bytes` bytes; null otherwise, also when it is unreadable. */
  findFile(
    file: Pick<NewFile, 'key' | 'upload_token'>,
    bytes: number,
    signal: AbortSignal,
  ): Promise<WrittenObject | null>;
  /** Resumes an upload of another attempt. Sends no request yet. */
  resumeUpload(upload: UploadReference): FileUpload;
  /** Aborts an upload. It is not an error if it no longer exists. */
  abortUpload(key: string, uploadId: string, signal: AbortSignal): Promise<void>;
  /**
   * Aborts all uploads of a file whose ids are unknown, because the response that contained them was lost. A mark of the
   * file, which may be unknown too, does not matter.
   */
  abortOrphanedUploads(
    spec: RunSpec,
    file: Omit<FileIdentity, 'mark'>,
    extension: string,
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Writes a small object in one request. An existing object is kept.
   * @returns false when it has other bytes; one that may not be read is taken for ours
   */
  putObject(key: string, contentType: string, bytes: Buffer, signal: AbortSignal): Promise<boolean>;
  /** Opens an object for reading; null if it does not exist. */
  openObject(key: string, signal: AbortSignal): Promise<OpenObject | null>;
  /** Deletes an object. It is not an error if it no longer exists. */
  deleteObject(key: string, signal: AbortSignal): Promise<void>;
  /**
   * Writes the manifest in one request, replacing only that of an older generation. It is read back if the store's
   * response does not prove what it stored. Publishing is claimed after the first response of the store, so that a store
   * which does not respond leaves no claim.
   * @returns `verified`: whether it is proven; false if it had to be read back, and the credentials may only write
   * @throws ManifestReplaced when a newer generation is stored, or a manifest that is not known; DestinationError
   * `ManifestUnreadable` when an object is stored there that cannot be read, and no manifest is known
   */
  putManifest(
    key: string,
    publication: ManifestPublication,
    known: KnownManifests,
    signal: AbortSignal,
  ): Promise<WrittenObject & { readonly verified: boolean }>;
  /** Reads what is stored under the key of a manifest. */
  getManifest(key: string, signal: AbortSignal): Promise<ManifestState>;
  /**
   * Deletes a manifest that was read before. If it has been replaced since, the new one is kept, if the store
   * supports conditional deletes.
   */
  deleteManifest(key: string, manifest: PresentManifest, signal: AbortSignal): Promise<void>;
  /**
   * Whether the object under the key was created by this upload; null when it is absent or unreadable, which credentials
   * without s3:ListBucket cannot distinguish.
   */
  isFromUpload(
    upload: Pick<UploadReference, 'key' | 'upload_token'>,
    signal: AbortSignal,
  ): Promise<boolean | null>;
  /** Closes the connections. */
  readonly close: () => void;
}

/** What an error means beyond its type; see the fields of `DestinationError`. */
export interface DestinationErrorOptions {
  readonly transient: boolean;
  readonly owner?: ErrorOwner;
  readonly unavailable?: boolean;
  readonly retry_delay_ms?: number;
}

/**
 * A destination rejected a request or did not respond. The message is for the owner of the export and contains no
 * secrets and no rows. The original error is not attached, because errors of an SDK contain access keys.
 */
export class DestinationError extends Error {
  override readonly name = 'DestinationError';
  /** Short name of the error, e.g. `NoSuchBucket`. */
  readonly type: string;
  /** Whether the same request may succeed later. */
  readonly transient: boolean;
  /** By default the tenant, who owns the bucket, or nobody if the error is transient. */
  readonly owner: ErrorOwner;
  /** Whether the destination did not respond, or responded that it cannot serve any request. */
  readonly unavailable: boolean;
  /** When the next attempt may succeed, in milliseconds; by default the retry policy decides. */
  readonly retry_delay_ms: number | undefined;

  constructor(type: string, message: string, options: DestinationErrorOptions) {
    super(message);
    this.type = type;
    this.transient = options.transient;
    this.unavailable = options.unavailable ?? false;
    this.retry_delay_ms = options.retry_delay_ms;
    this.owner = options.owner ?? (options.transient ? 'nobody' : 'tenant');
  }
}

/** The bucket has another manifest of the interval than the one that the run may replace. */
export class ManifestReplaced extends DestinationError {
  readonly found: Manifest;

  constructor(found: Manifest, generation: number) {
    super(
      'ManifestReplaced',
      `The bucket already contains generation ${found.generation} of this interval's manifest, written by run ${found.run_id}; ` +
        `generation ${generation} does not replace it.`,
      { transient: false },
    );
    this.found = found;
  }
}
