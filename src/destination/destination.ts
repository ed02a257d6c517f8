import type { ErrorOwner } from '../domain/errors.ts';
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

/** The object under the key of a manifest, which may be anything. */
export interface PresentManifest {
  readonly state: 'present';
  readonly etag: string;
  /** In a bucket that keeps versions; `null` is the name of one from before it did. */
  readonly version_id: string | undefined;
  readonly text: string;
  readonly expires_at: string | null;
}

/**
 * An object that is being read. `chunks` can be read once; it throws DestinationError, `ObjectReplaced` when the
 * object changed.
 */
export interface OpenObject {
  readonly bytes: number;
  readonly etag: string;
  readonly chunks: AsyncIterable<Buffer>;
  /** Ends the request of an object that is not read. */
  close(): void;
}

/** What is stored under the key of an interval's manifest. */
export type ManifestState =
  | { readonly state: 'absent' }
  /** Absent or unreadable: without s3:ListBucket, a server denies reading a key that is missing. */
  | { readonly state: 'unreadable' }
  | PresentManifest;

/**
 * The claim of a run on the manifest of its interval, and what the journal says about that. The store is asked first, then the
 * claim is held, then the manifest is sent: a store that does not respond leaves no claim, and a claim means that the manifest
 * may be stored.
 */
export interface ManifestClaim extends Pick<Manifest, 'run_id' | 'generation'> {
  readonly files: readonly Pick<Manifest['files'][number], 'key'>[];
  /** Failed runs that claimed publishing of the same files before: a manifest of one of them is replaced like the own. */
  readonly claimed_by: readonly string[];
  /** The manifest under the claim of this attempt, or of an earlier one, which may have written it; null without one. */
  readonly manifest: Manifest | null;
  /**
   * Whether the interval should have no manifest yet, and the store has just written a file of the run, so that it responds:
   * then a store that refuses to overwrite need not be asked first.
   */
  readonly expectsNone: boolean;
  /**
   * Whether the journal knows the manifest that is stored, so that it may be replaced. Null is one that cannot be read:
   * whether the journal knows any that may have been written before.
   */
  knows(found: Manifest | null): Promise<boolean>;
  /** Claims publishing, once, so that a cancellation asks the bucket first, and returns the manifest. */
  hold(): Promise<Manifest>;
  /** Withdraws the claim if it is held, because the manifest was not sent. */
  withdraw(): Promise<void>;
}

/** What an error means beyond its type; see the fields of `DestinationError`. */
export interface DestinationErrorOptions {
  readonly transient: boolean;
  readonly owner?: ErrorOwner;
  readonly unavailable?: boolean;
  readonly retry_delay_ms?: number;
  readonly said?: string | undefined;
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
  /** By default the tenant, who owns the bucket; `none` if the error is transient. */
  readonly owner: ErrorOwner;
  /** Whether the destination did not respond, or responded that it cannot serve any request. */
  readonly unavailable: boolean;
  /** When the next attempt may succeed, in milliseconds; by default the retry policy decides. */
  readonly retry_delay_ms: number | undefined;
  /**
   * What the server says of the error, cut and without secrets: for the owner of the export alone. The message is also shown to
   * the operator, and to others who wait for the same server.
   */
  readonly said: string | undefined;

  constructor(type: string, message: string, options: DestinationErrorOptions) {
    super(message);
    this.type = type;
    this.transient = options.transient;
    this.unavailable = options.unavailable ?? false;
    this.retry_delay_ms = options.retry_delay_ms;
    this.said = options.said;
    this.owner = options.owner ?? (options.transient ? 'none' : 'tenant');
  }

  /** The message for the owner of the export, with what the server says. */
  get messageForOwner(): string {
    return this.withServerText(this.message);
  }

  /** Adds what the server says to another message for the owner of the export. */
  withServerText(message: string): string {
    return this.said === undefined || this.owner === 'operator'
      ? message
      : `${message} The server says: ${this.said}`;
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

/** The bucket has a manifest at the key of the interval's that exportd has not written, or that was changed. */
export class ManifestForeign extends DestinationError {
  /** @param interval the interval, for people */
  constructor(interval: string, reason: string) {
    super(
      'ManifestForeign',
      `The manifest of ${interval} in the bucket is not one that exportd wrote. ${reason} Look who may write below this prefix. Delete the ` +
        'object and retry the run; if exportd wrote it with a prefix or format that its restored database does not know, set that ' +
        'in the destination once before the retry.',
      { transient: false },
    );
  }
}

/** Sends one small request. @throws DestinationError with `unavailable` when the destination does not respond */
export type Probe = () => Promise<void>;

/** How an attempt waits for a probe. */
export interface ProbeWait {
  /**
   * Lets another attempt use the slot of this one. Undefined when no more slots may be yielded; then the attempt does not
   * wait. An attempt outside the export slots has none to yield.
   */
  readonly yieldSlot?: () => (() => void) | undefined;
  readonly signal: AbortSignal;
  /** The run of the attempt, which waits for the destination if it is turned away. */
  readonly runId?: string;
}

/** Reports the outcomes of requests to one destination. */
export interface CircuitReporter {
  /** The destination responded. */
  responded(): void;
  /** The destination did not respond for as long as an attempt may wait. Opens the circuit. Returns the error to throw. */
  unavailable(error: DestinationError): Promise<DestinationError>;
  /** Whether this process knows that the circuit is open. */
  isOpen(): boolean;
}

/** Whether destinations respond, as those who open them ask. src/failures implements it. */
export interface CircuitBreaker {
  /**
   * Admits an attempt whose destination responds. One that has been silent for a while is probed first.
   * @throws DestinationError `DestinationUnavailable`, with the time of the next attempt
   */
  admit(destination: string, probe: Probe, waiting: ProbeWait): Promise<void>;
  reporter(destination: string): CircuitReporter;
}
