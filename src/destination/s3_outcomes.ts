/** How each request to an S3 server ended, for metrics. */
import { S3Client } from '@aws-sdk/client-s3';
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { DestinationError } from './destination.ts';
import { isThrottled } from './errors.ts';

/** How a request ended; one word for each thing that an operator would do about it. */
const s3Outcomes = [
  'ok',
  'not_found',
  'conflict',
  'denied',
  'rejected',
  'throttled',
  'server_error',
  'no_response',
  'aborted',
] as const;
type S3Outcome = (typeof s3Outcomes)[number];

/** A request to an S3 server that has ended. A request that the SDK repeats is one for each attempt. */
export interface EndedS3Request {
  /** As in the S3 API, for example `UploadPart`. */
  readonly operation: string;
  readonly outcome: S3Outcome;
  readonly seconds: number;
}

// A channel, because clients are created deep inside destinations, and metrics are of the whole process.
const endedName = 'exportd.s3.request_ended';
const ended = channel(endedName);

/** Calls `observe` for every request of this process. @returns a function that stops it */
export function observeS3Requests(observe: (request: EndedS3Request) => void): () => void {
  const listener = (message: unknown): void => observe(message as EndedS3Request);
  subscribe(endedName, listener);
  return () => {
    unsubscribe(endedName, listener);
  };
}

/** Publishes the end of each request of a client. */
export function publishRequests(client: S3Client): void {
  client.middlewareStack.add(
    (next, context) => async (call) => {
      if (!ended.hasSubscribers) return next(call);
      const operation = (context.commandName ?? 'unknown').replace(/Command$/, '');
      const startedAt = performance.now();
      const publish = (outcome: S3Outcome): void => {
        const seconds = (performance.now() - startedAt) / 1_000;
        ended.publish({ operation, outcome, seconds } satisfies EndedS3Request);
      };
      try {
        const output = await next(call);
        publish('ok');
        return output;
      } catch (error) {
        publish(outcomeOf(error));
        throw error;
      }
    },
    // After the SDK's retries, so that each attempt passes.
    { step: 'finalizeRequest', priority: 'low', name: 'publishRequests' },
  );
}

/** The outcome of a request that was rejected with this error. */
export function outcomeOf(error: unknown): S3Outcome {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  const status = $metadata?.httpStatusCode;
  if (name === 'AbortError') return 'aborted';
  if (error instanceof DestinationError) return outcomeOfAnswer(error);
  if (status === undefined) return 'no_response';
  // A condition of a read that does not hold.
  if (status < 400) return 'ok';
  if (status === 429 || (name !== undefined && isThrottled(name))) return 'throttled';
  if (status >= 500) return 'server_error';
  switch (status) {
    case 401:
    case 403:
      return 'denied';
    case 404:
      return 'not_found';
    case 409:
    case 412:
      return 'conflict';
    default:
      return 'rejected';
  }
}

/** The outcome of an answer that the client does not believe, or of an address that it does not connect to. */
function outcomeOfAnswer({ type }: DestinationError): S3Outcome {
  if (type === 'EndpointNotAllowed') return 'no_response';
  return type.endsWith('Redirect') ? 'rejected' : 'server_error';
}
