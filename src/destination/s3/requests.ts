import { setTimeout as wait } from 'node:timers/promises';
import type { S3Client } from '@aws-sdk/client-s3';
import type { DestinationContext, DestinationFault } from '../destination.ts';
import type { S3Config } from './config.ts';
import { conditionFailed, faultOf } from './faults.ts';
import { lendS3Client } from './lent_clients.ts';

/** Requests to the bucket of one destination, made patiently. */
export interface S3Requests {
  readonly bucket: string;
  /**
   * Makes a request; passing faults are waited out for as long as EXPORTD_S3_PATIENCE_MS, so that an outage does not
   * cost the parts that are already there. Since a reply can be lost, the request may arrive twice.
   * @throws DestinationFault, or the signal's reason once it is aborted.
   */
  send<Output>(
    operation: string,
    signal: AbortSignal,
    call: (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<Output>,
  ): Promise<Output>;
  /** Tells the owner of the export of a fault that is worked around. */
  readonly tell: (fault: DestinationFault) => void;
  readonly close: () => void;
}

/** Faults that waiting does not change: whoever asked has to look what became of the object or the upload. */
const needsDecision = new Set(['NoSuchUpload', 'InvalidPart', ...conditionFailed]);

/** Answers about an object, which say nothing against the connection, the credentials or the server. */
const isAnswer = ({ type }: DestinationFault): boolean =>
  needsDecision.has(type) || type === 'NoSuchKey' || type === 'NotFound';

/** Opens the way to the bucket of one config. */
export function createS3Requests(config: S3Config, { settings, onFault }: DestinationContext): S3Requests {
  const lent = lendS3Client(config, settings);
  let reusable = true;
  const {
    EXPORTD_S3_PATIENCE_MS: patience,
    EXPORTD_ACTIVITY_RETRY_INITIAL_MS: initial,
    EXPORTD_ACTIVITY_RETRY_MAX_MS: maximum,
  } = settings;
  const isWorthWaiting = (fault: DestinationFault): boolean =>
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
          const fault = faultOf(error, operation);
          if (signal.aborted || !isAnswer(fault)) reusable = false;
          signal.throwIfAborted();
          if (!isWorthWaiting(fault) || Date.now() + pause > deadline) throw fault;
          onFault(fault);
          await wait(pause, undefined, { signal }).catch(() => {
            throw signal.reason;
          });
        }
      }
    },
    tell: onFault,
    close: () => lent.giveBack({ reusable }),
  };
}
