import { setTimeout as wait } from 'node:timers/promises';
import type { S3Client } from '@aws-sdk/client-s3';
import type { DestinationError } from '../destination.ts';
import type { DestinationContext } from '../destination_type.ts';
import type { StoreTraits } from '../store_traits.ts';
import type { S3Config } from './config.ts';
import { conditionFailureCodes, toDestinationError } from './errors.ts';
import { withOwner } from './error_owner.ts';
import { acquireS3Client } from './client_pool.ts';

/** Requests to the bucket of a destination, with retries. */
export interface S3Requests {
  readonly bucket: string;
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
  /** Reports an error that is worked around to the owner of the export. */
  readonly report: (failure: DestinationError) => void;
  /** Stores what a request revealed of the store. */
  readonly learn: (found: Partial<StoreTraits>) => Promise<void>;
  readonly close: () => void;
}

/** How long a request is retried. */
export interface SendOptions {
  /** Whether a failure wastes what was sent before: retried for EXPORTD_S3_LONG_RETRY_BUDGET. */
  readonly wastesParts?: boolean;
}

/** Errors that are not retried: the caller checks the state of the object or upload. */
const notRetried = new Set(['NoSuchUpload', 'InvalidPart', ...conditionFailureCodes]);

/** Errors about an object, which do not indicate a problem of the connection, credentials or server. */
const isAboutObject = ({ type }: DestinationError): boolean =>
  notRetried.has(type) || type === 'NoSuchKey' || type === 'NotFound';

/** Creates the requests to the bucket of a config. */
export function createS3Requests(
  config: S3Config,
  { settings, onError, onTraits, circuit }: DestinationContext,
): S3Requests {
  const pooled = acquireS3Client(config, settings);
  let reusable = true;
  const {
    EXPORTD_S3_RETRY_BUDGET: retryBudget,
    EXPORTD_S3_LONG_RETRY_BUDGET: longRetryBudget,
    EXPORTD_ACTIVITY_RETRY_INITIAL: initial,
    EXPORTD_ACTIVITY_RETRY_MAX: maximum,
  } = settings;
  const shouldRetry = (failure: DestinationError): boolean =>
    failure.transient && !notRetried.has(failure.type);
  /** Why the destination is unavailable, once a request was given up. */
  let unavailable: DestinationError | undefined;
  return {
    bucket: config.bucket_name,
    send: async (operation, signal, call, { wastesParts = false } = {}) => {
      const started = Date.now();
      const budget = wastesParts ? Math.max(retryBudget, longRetryBudget) : retryBudget;
      for (let pause = initial; ; pause = Math.min(pause * 2, maximum)) {
        signal.throwIfAborted();
        if (unavailable) throw unavailable;
        try {
          const output = await call(pooled.client, { abortSignal: signal });
          circuit?.responded();
          return output;
        } catch (error) {
          const failure = withOwner(toDestinationError(error, operation, config.bucket_name), config);
          if (signal.aborted || !isAboutObject(failure)) reusable = false;
          signal.throwIfAborted();
          const retriedFor = Date.now() + pause - started;
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
    report: onError,
    learn: async (found) => onTraits?.(found),
    close: () => pooled.release({ reusable }),
  };
}
