import type { Model } from '../domain/batch_export.ts';
import type { RunSpec } from '../domain/run.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import type { Settings } from '../config/settings.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { Manifest } from './manifest.ts';
import type { TestStep } from './test_result.ts';

/** A part as the destination has acknowledged it; what completing the file needs. */
export interface UploadedPart {
  readonly part_number: number;
  readonly etag: string;
}

/** A part as the destination lists it. */
export interface StoredPart extends UploadedPart {
  readonly bytes: number;
}

/** Names an upload to whoever goes on with it. */
export interface UploadReference {
  readonly key: string;
  readonly upload_id: string;
  /** Tells the finished file from any other of the same key and size. */
  readonly upload_token: string;
}

/** A file under way. Nothing of it is visible to readers before `complete`. */
export interface FileUpload extends UploadReference {
  /** The highest number that a part may have. */
  readonly partNumberMaximum: number;
  /** How many bytes a part gathers before it is sent; `position` counts the file's parts from 1, without gaps. */
  partBytes(position: number): number;
  /** The parts that have arrived, by number; null when the upload is gone: completed, or thrown away. */
  listParts(signal: AbortSignal): Promise<readonly StoredPart[] | null>;
  /** Whether the finished file is there, made of this upload, with so many bytes; false when that cannot be seen. */
  isFinished(bytes: number, signal: AbortSignal): Promise<boolean>;
  /** Several parts may be under way at once. */
  putPart(partNumber: number, bytes: Buffer, signal: AbortSignal): Promise<UploadedPart>;
  /**
   * Makes the file visible, whole. `bytes` is the length of all its parts together. A repeat after a lost reply is safe.
   * @throws DestinationError `UploadNotFound` when the upload is gone and the file is not there: it has to start anew.
   */
  complete(parts: readonly UploadedPart[], bytes: number, signal: AbortSignal): Promise<void>;
}

/** Which of an interval's files a key is for. */
export interface FileIdentity {
  /** Which export of the interval it belongs to, from 1. */
  readonly generation: number;
  /** Which range of the interval it holds, from 0, where several are exported side by side; else null. */
  readonly range: number | null;
  /** Which file it is, from 0, where files have a largest size; else null, for the only one. */
  readonly file: number | null;
}

/** What the keys of an interval depend on. */
export type KeySubject = Pick<
  RunSpec,
  'batch_export_id' | 'model' | 'data_interval_start' | 'data_interval_end'
>;

/** An object in the place of a manifest: whatever it is, its bytes as text. */
export interface PresentManifest {
  readonly state: 'present';
  readonly etag: string | undefined;
  readonly text: string;
}

/** What stands where an interval's manifest belongs. */
export type ManifestState =
  | { readonly state: 'absent' }
  /** The credentials may write but not read. */
  | { readonly state: 'unreadable' }
  | PresentManifest;

/** One export's destination, opened with one version of its config. Every method throws DestinationError. */
export interface Destination {
  /** How files are encoded there. */
  readonly encoding: EncodingOptions;
  /** A file is ended with the first block that makes it this large; null for no bound. */
  readonly maxFileBytes: number | null;
  fileKey(subject: RunSpec, place: FileIdentity, extension: string): string;
  /** Of the rows that a generation had to leave out. */
  rejectedKey(subject: RunSpec, generation: number): string;
  manifestKey(subject: KeySubject): string;
  /** The full name of an object for people, e.g. `s3://bucket/key`. */
  nameOf(key: string): string;
  createUpload(key: string, contentType: string, signal: AbortSignal): Promise<FileUpload>;
  /** A file that another attempt began. Asks nothing of the destination yet. */
  resumeUpload(upload: UploadReference): FileUpload;
  /** Throws an upload away that will not be completed; one that is gone already is no error. */
  abortUpload(key: string, uploadId: string, signal: AbortSignal): Promise<void>;
  /** Throws uploads of a file away of which nobody knows the id, since the answer that told it was lost. */
  abortOrphanedUploads(key: string, signal: AbortSignal): Promise<void>;
  /**
   * Writes a small object in one step. One that stands there already is left alone: only for keys that nobody writes
   * anything else under.
   */
  putObject(key: string, contentType: string, bytes: Buffer, signal: AbortSignal): Promise<void>;
  /** Removes an object; one that is gone already is no error. */
  deleteObject(key: string, signal: AbortSignal): Promise<void>;
  /**
   * Writes the manifest in one step, replacing only an older generation's, and reads it back.
   * @returns whether it could be read back; false where the credentials may write only.
   * @throws DestinationError `ManifestReplaced` when a newer generation stands there.
   */
  putManifest(key: string, manifest: Manifest, signal: AbortSignal): Promise<{ verified: boolean }>;
  /** What readers see now in the place of a manifest. */
  getManifest(key: string, signal: AbortSignal): Promise<ManifestState>;
  /** Removes a manifest that was looked at; one that took its place since stays, where the store can tell them apart. */
  deleteManifest(key: string, seen: PresentManifest, signal: AbortSignal): Promise<void>;
  /** Whether the object under the upload's key was made of it; null when the credentials may not look. */
  isFromUpload(
    upload: Pick<UploadReference, 'key' | 'upload_token'>,
    signal: AbortSignal,
  ): Promise<boolean | null>;
  /** Closes its connections. */
  readonly close: () => void;
}

/** What a destination is opened with besides its config. */
export interface DestinationContext {
  readonly settings: Settings;
  /**
   * Called when a request failed for a passing reason and is tried again after a wait; and with a fault that is not
   * transient where something is missing that can be done without.
   */
  readonly onError: (fault: DestinationError) => void;
}

/** What of an export decides over the keys that it writes: its stored config, without secrets, and its model. */
export interface KeySource {
  readonly config: Readonly<Record<string, unknown>>;
  readonly model: Model;
}

/** What an installation lets destinations do. */
export type DestinationSettings = Pick<
  Settings,
  'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN'
>;

/** A kind of destination: one folder here and one line in the registry. */
export interface DestinationType<Config extends Record<string, unknown> = Record<string, unknown>> {
  readonly name: string;
  /** Members that are stored encrypted and never returned. */
  readonly secretFields: readonly string[];
  /** What members are that a config does not hold: every member that may be shown and need not be given. */
  readonly defaultFields: Readonly<Record<string, unknown>>;
  /**
   * Checks a config as a user sent it and fills in defaults.
   * @throws CommandRejected that names the member.
   */
  parseConfig(config: unknown, settings: DestinationSettings): Config;
  /** The server that secrets are sent to. Secrets that are kept are for this one: another needs them given again. */
  serverOf(config: Readonly<Record<string, unknown>>): string;
  /** Which rows an export with this stored config takes; asks for no secret. */
  selectionOf(config: Readonly<Record<string, unknown>>): RowSelection;
  /** Whether two exports to destinations of this kind would write the same keys for an interval that both have. */
  keysCollide(one: KeySource, other: KeySource): boolean;
  /**
   * A config with the credentials of another, for what lies where both lead to: older ones may have been revoked. The
   * config itself when they lead to different places.
   */
  withAccessOf(config: Config, other: Config): Config;
  open(config: Config, context: DestinationContext): Destination;
  /** Tries the destination step by step. Leaves nothing there, as far as it may delete. */
  test(config: Config, settings: Settings): Promise<readonly TestStep[]>;
}

/**
 * A request that a destination refused or did not answer. The message is a sentence for the owner of the export: it
 * holds no secret and no row, and the original error is not attached, since an SDK's errors carry access keys.
 */
export class DestinationError extends Error {
  override readonly name = 'DestinationError';
  /** Short name of the fault, e.g. `NoSuchBucket`. */
  readonly type: string;
  /** Whether the same request may succeed later. */
  readonly transient: boolean;

  constructor(type: string, message: string, options: { transient: boolean }) {
    super(message);
    this.type = type;
    this.transient = options.transient;
  }
}
