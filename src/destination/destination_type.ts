import type { z } from 'zod';
import type { Settings } from '../config/settings.ts';
import type { Model } from '../domain/batch_export.ts';
import type { RowSelection } from '../source/row_selection.ts';
import type { EncodingOptions } from '../encoding/encoder.ts';
import type { Destination, DestinationError, KeySpec } from './destination.ts';
import type { CircuitReporter } from './circuit_breaker.ts';
import type { StoreTraits } from './store_traits.ts';
import type { TestStep } from './test_result.ts';

/** Dependencies of a destination. */
export interface DestinationContext {
  readonly settings: Settings;
  /**
   * Called when a request failed with a transient error and will be retried; also with a permanent error that the
   * destination can work around.
   */
  readonly onError: (error: DestinationError) => void;
  /** How the store behaves; unknown by default. */
  readonly traits?: StoreTraits;
  /** Stores what a request revealed of the store. */
  readonly onTraits?: (found: Partial<StoreTraits>) => Promise<void>;
  /** The circuit of the destination, which its requests report to; none by default. */
  readonly circuit?: CircuitReporter;
}

/** What determines the keys that an export writes: its stored config, without secrets, and its model. */
export interface KeySource {
  readonly config: Readonly<Record<string, unknown>>;
  readonly model: Model;
}

/** Settings that restrict destinations. */
export type DestinationSettings = Pick<
  Settings,
  'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN'
> & {
  /**
   * For configs of requests: the external id of the project, which nobody chooses, so that a project cannot make exportd
   * assume the role of another. Stored configs have theirs.
   */
  readonly external_id?: string;
};

/** The result of a destination test. */
export interface DestinationTestResult {
  readonly steps: readonly TestStep[];
  readonly traits: StoreTraits;
}

/** What an export will write, as far as its config alone determines it. */
export interface DestinationPreview {
  readonly selection: RowSelection;
  readonly encoding: EncodingOptions;
  /** Null when an interval has one file. */
  readonly maxFileBytes: number | null;
  /** The names of an interval's manifest and of its first file, such as `s3://bucket/key`. */
  namesOf(spec: KeySpec): { readonly manifest: string; readonly file: string };
}

/** A type of destination: a folder here and a line in the registry. */
export interface DestinationType<Config extends Record<string, unknown> = Record<string, unknown>> {
  readonly name: string;
  /** Fields that are stored encrypted and never returned. */
  readonly secretFields: readonly string[];
  /** Defaults of all optional fields that are not secret. */
  readonly defaultFields: Readonly<Record<string, unknown>>;
  /** The fields of a config from a request, for documents; `parseConfig` validates more than it says. */
  readonly configSchema: z.ZodObject;
  /** Validates a config from a request and fills in defaults. @throws CommandRejected with the invalid field */
  parseConfig(config: unknown, settings: DestinationSettings): Config;
  /** Server and bucket of a config, which determine the traits of its store. */
  locationOf(config: Readonly<Record<string, unknown>>): string;
  /** The server that receives the secrets. When it changes, stored secrets are not reused and must be given again. */
  serverOf(config: Readonly<Record<string, unknown>>): string;
  /** The rows that an export with this stored config selects. Needs no secret. */
  selectionOf(config: Readonly<Record<string, unknown>>): RowSelection;
  /**
   * Previews what a config from a request writes, before it is complete: fields that decide nothing about keys and rows,
   * such as credentials, may be missing.
   * @throws CommandRejected with the invalid field
   */
  previewOf(config: unknown): DestinationPreview;
  /** Whether two exports to this type of destination would write the same keys for a common interval. */
  keysCollide(one: KeySource, other: KeySource): boolean;
  /**
   * Returns `config` with the credentials of `other` if both lead to the same location, because older credentials may
   * have been revoked; else `config`.
   */
  withCredentialsOf(config: Config, other: Config): Config;
  /**
   * A digest of what requests are sent to: exports with equal digests are unavailable together. Credentials are no part of
   * it, so that the owner of one export can make no other unavailable.
   */
  circuitOf(config: Readonly<Record<string, unknown>>): string;
  open(config: Config, context: DestinationContext): Destination;
  /**
   * Sends one small request. Any response will do, also an error for which the owner of the bucket is responsible.
   * @throws DestinationError with `unavailable` when there is none in EXPORTD_S3_PROBE_TIMEOUT
   */
  probe(config: Config, settings: Settings): Promise<void>;
  /** Tests the destination step by step, and finds out how its store behaves. Deletes what it wrote, if permitted. */
  test(config: Config, settings: Settings): Promise<DestinationTestResult>;
}
