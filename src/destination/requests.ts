/** Requests to S3: clients with their connections, credentials and trusted authorities, and what each request reports. */
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  type $Command,
  HeadObjectCommand,
  S3Client,
  type S3ClientResolvedConfig,
  type ServiceInputTypes,
  type ServiceOutputTypes,
} from '@aws-sdk/client-s3';
import type { Settings } from '../config/settings.ts';
import { type ForeignBytes, foreignBytesOf } from '../foreign_bytes/foreign_bytes.ts';
import { type CircuitReporter, DestinationError } from './destination.ts';
import type { S3Config } from './config.ts';
import { conditionFailureCodes, toDestinationError, withOwner, withServerText } from './errors.ts';
import { probeKey } from './keys.ts';
import { type StoreTraits, unknownTraits } from './store_traits.ts';
import { acquireS3Client } from './client_pool.ts';
import { type ObservedStore, observedStore } from './observed_store.ts';

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
  /** The project that owns the bucket; null, the default, for a person at the command line or before there is an export. */
  readonly team_id?: number | null;
  /** The circuit of the destination, which its requests report to; none by default. */
  readonly circuit?: CircuitReporter;
}

/** Requests to the bucket of a destination, with retries. */
export interface S3Requests {
  readonly bucket: string;
  /** How long a connection may be silent, in milliseconds. */
  readonly silenceMs: number;
  /**
   * Sends a request. Transient errors are retried for EXPORTD_S3_RETRY_BUDGET, which rides out a short interruption.
   * After that the destination is unavailable: further requests of the attempt fail at once. Because a response can be
   * lost, the request may arrive twice.
   * @throws DestinationError, or the signal's reason once it is aborted
   */
  send<Output>(
    operation: string,
    signal: AbortSignal,
    call: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<Output>,
    options?: SendOptions,
  ): Promise<Output>;
  /** Reads what the objects of the bucket are. */
  readonly foreign: ForeignBytes;
  /** Reports an error that is worked around to the owner of the export. */
  readonly report: (failure: DestinationError) => void;
  /** Whether the bucket is known to keep versions. */
  isVersioned(): boolean;
  /** Stores what a request revealed of the store. */
  readonly learn: (found: Partial<StoreTraits>) => Promise<void>;
  readonly close: () => void;
}

/** Sends one command, created anew for each attempt. See `S3Requests.send`. */
export const sendCommand = <Input extends ServiceInputTypes, Output extends ServiceOutputTypes>(
  requests: Pick<S3Requests, 'send'>,
  Command: new (
    input: Input,
  ) => $Command<Input, Output, S3ClientResolvedConfig, ServiceInputTypes, ServiceOutputTypes>,
  input: Input,
  signal: AbortSignal,
  options?: SendOptions,
): Promise<Output> =>
  requests.send(
    Command.name.replace(/Command$/, ''),
    signal,
    (client, call) => client.send(new Command(input), call),
    options,
  );

/** How long a request is retried. */
interface SendOptions {
  /** Whether a failure wastes what was sent before: retried for longer. */
  readonly wastesParts?: boolean;
}

/** How long a request is retried whose failure wastes parts that were sent, in milliseconds. */
const longRetryBudgetMs = 5 * 60_000;

/** Errors that are not retried: the caller checks the state of the object or upload. */
const notRetried = new Set(['NoSuchUpload', 'InvalidPart', ...conditionFailureCodes]);

/** Errors about an object, which do not indicate a problem of the connection, credentials or server. */
const isAboutObject = ({ type }: DestinationError): boolean =>
  notRetried.has(type) || type === 'NoSuchKey' || type === 'NotFound';

/** Creates the requests to the bucket of a config. */
export function createS3Requests(
  config: S3Config,
  { settings, onError, traits = unknownTraits, onTraits, circuit, team_id = null }: DestinationContext,
): S3Requests {
  const pooled = acquireS3Client(config, settings);
  let known: Readonly<ObservedStore> = traits;
  const store: ObservedStore = {
    server: traits.server,
    versioned: traits.versioned,
    demands_checksums: traits.demands_checksums,
  };
  /** Stores what the requests so far have shown, before anything relies on what was known. */
  const learnObserved = async (): Promise<void> => {
    const { server, versioned, demands_checksums } = store;
    if (
      server === known.server &&
      versioned === known.versioned &&
      demands_checksums === known.demands_checksums
    )
      return;
    known = { server, versioned, demands_checksums };
    await onTraits?.(known);
  };
  let reusable = true;
  const ofMachine = config.aws_access_key_id === undefined && config.role_arn === null;
  const {
    EXPORTD_S3_RETRY_BUDGET: retryBudget,
    EXPORTD_ACTIVITY_RETRY_INITIAL: initial,
    EXPORTD_ACTIVITY_RETRY_MAX: maximum,
  } = settings;
  const shouldRetry = (failure: DestinationError): boolean =>
    failure.transient && !notRetried.has(failure.type);
  /** Why the destination is unavailable, once a request was given up. */
  let unavailable: DestinationError | undefined;
  return {
    bucket: config.bucket_name,
    silenceMs: settings.EXPORTD_S3_REQUEST_TIMEOUT,
    send: async (operation, signal, call, { wastesParts = false } = {}) => {
      const started = performance.now();
      const budget = wastesParts ? Math.max(retryBudget, longRetryBudgetMs) : retryBudget;
      for (let pause = initial; ; pause = Math.min(pause * 2, maximum)) {
        signal.throwIfAborted();
        if (unavailable) throw unavailable;
        try {
          const output = await observedStore.run(store, () => call(pooled.client, { abortSignal: signal }));
          circuit?.responded();
          await learnObserved();
          return output;
        } catch (error) {
          const described = withOwner(toDestinationError(error, operation, config.bucket_name), config);
          const failure = withServerText(described, error, config, { ofMachine });
          if (signal.aborted || !isAboutObject(failure)) reusable = false;
          signal.throwIfAborted();
          const retriedFor = performance.now() + pause - started;
          // Another attempt may have found out already that waiting is useless.
          const givesUp =
            retriedFor > budget || (!wastesParts && failure.unavailable && circuit?.isOpen() === true);
          if (
            shouldRetry(failure) &&
            failure.unavailable &&
            circuit &&
            (givesUp || retriedFor > retryBudget)
          ) {
            const reported = await circuit.unavailable(failure);
            if (givesUp) {
              unavailable = reported;
              throw reported;
            }
          }
          if (!shouldRetry(failure) || givesUp) throw failure;
          onError(failure);
          await wait(pause, undefined, { signal }).catch(() => {
            throw signal.reason;
          });
        }
      }
    },
    foreign: foreignBytesOf(settings, team_id),
    report: onError,
    isVersioned: () => store.versioned === true,
    learn: async (found) => onTraits?.({ server: store.server, ...found }),
    close: () => pooled.release({ reusable }),
  };
}

/**
 * A digest of what the requests of a config are sent to: server, region and bucket. Exports with equal digests are
 * unavailable together. Credentials are no part of it, so that the owner of one export can make no other unavailable. The style of addresses is part of it, because it
 * changes the host name, and so is the use of a role, because AWS STS may be unavailable.
 */
export function circuitOf(config: Readonly<Record<string, unknown>>): string {
  const { endpoint_url, use_virtual_style_addressing, region, bucket_name, role_arn } = config;
  const fields = [
    endpoint_url,
    use_virtual_style_addressing,
    region,
    bucket_name,
    typeof role_arn === 'string',
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64url');
}

/**
 * Asks for an object that does not exist. Any response will do, also an error for which the owner of the bucket is responsible.
 * @throws DestinationError with `unavailable` when the server does not respond
 */
export async function probeS3(config: S3Config, settings: Settings): Promise<void> {
  const pooled = acquireS3Client(config, settings);
  const signal = AbortSignal.timeout(settings.EXPORTD_S3_PROBE_TIMEOUT);
  let reusable = true;
  try {
    const object = { Bucket: config.bucket_name, Key: probeKey(config.prefix) };
    await pooled.client.send(new HeadObjectCommand(object), { abortSignal: signal });
  } catch (error) {
    const failure = toDestinationError(error, 'HeadObject', config.bucket_name);
    const timedOut = signal.aborted && !(error instanceof DestinationError);
    reusable = !timedOut && !failure.unavailable;
    if (timedOut)
      throw new DestinationError(
        'S3Unreachable',
        `The S3 server did not respond in ${settings.EXPORTD_S3_PROBE_TIMEOUT} ms; check endpoint_url of the destination and whether the server is running.`,
        { transient: true, unavailable: true },
      );
    if (failure.unavailable) throw failure;
  } finally {
    pooled.release({ reusable });
  }
}
