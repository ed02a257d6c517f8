import { setTimeout as wait } from 'node:timers/promises';
import type { S3Client } from '@aws-sdk/client-s3';
import type { DestinationContext, DestinationError } from '../destination.ts';
import type { S3Config } from './config.ts';
import { conditionFailed, toDestinationError } from './errors.ts';
import { acquireS3Client } from './client_pool.ts';

/** Requests to the bucket of one destination, made patiently. */
export interface S3Requests {
  readonly bucket: string;
  /**
   * Makes a request; passing faults are waited out for as long as EXPORTD_S3_RETRY_BUDGET, so that an outage does not
   * cost the parts that are already there. Since a reply can be lost, the request may arrive twice.
   * @throws DestinationError, or the signal's reason once it is aborted.
   */
  send<Output>(
    operation: string,
    signal: AbortSignal,
    call: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<Output>,
  ): Promise<Output>;
  /** Tells the owner of the export of a fault that is worked around. */
  readonly tell: (fault: DestinationError) => void;
  readonly close: () => void;
}

/** Faults that waiting does not change: whoever asked has to look what became of the object or the upload. */
const needsDecision = new Set(['NoSuchUpload', 'InvalidPart', ...conditionFailed]);

/** Answers about an object, which say nothing against the connection, the credentials or the server. */
const isAnswer = ({ type }: DestinationError): boolean =>
  needsDecision.has(type) || type === 'NoSuchKey' || type === 'NotFound';

/** Opens the way to the bucket of one config. */
export function createS3Requests(config: S3Config, { settings, onError }: DestinationContext): S3Requests {
  const lent = acquireS3Client(config, settings);
  let reusable = true;
  const {
    EXPORTD_S3_RETRY_BUDGET: patience,
    EXPORTD_ACTIVITY_RETRY_INITIAL: initial,
    EXPORTD_ACTIVITY_RETRY_MAX: maximum,
  } = settings;
  const isWorthWaiting = (fault: DestinationError): boolean =>
    fault.transient && !needsDecision.has(fault.type);
  return {
    bucket: config.bucket_name,
    send: async (operation, signal, call) => {
      const deadline = Date.now() + patience;
      for (let pause = initial; ; pause = Math.min(pause * 2, maximum)) {
        signal.throwIfAborted();
        try {
          return await call(lent.client, { abortSignal: signal });
        } catch (error) {
          const fault = toDestinationError(error, operation);
          if (signal.aborted || !isAnswer(fault)) reusable = false;
          signal.throwIfAborted();
          if (!isWorthWaiting(fault) || Date.now() + pause > deadline) throw fault;
          onError(fault);
          await wait(pause, undefined, { signal }).catch(() => {
            throw signal.reason;
          });
        }
      }
    },
    tell: onError,
    close: () => lent.release({ reusable }),
  };
}
