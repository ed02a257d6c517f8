import { channel } from 'node:diagnostics_channel';
import type { S3Client } from '@aws-sdk/client-s3';
import { inSpan, SpanKind } from '../tracing/spans.ts';

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
const ended = channel('exportd.s3.request_ended');

/** Calls `observe` for every request of this process. @returns a function that stops it */
export function observeS3Requests(observe: (request: EndedS3Request) => void): () => void {
  const listener = (message: unknown): void => observe(message as EndedS3Request);
  ended.subscribe(listener);
  return () => {
    ended.unsubscribe(listener);
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
  if (status === undefined) return 'no_response';
  // A condition of a read that does not hold.
  if (status < 400) return 'ok';
  if (status === 429 || name === 'SlowDown') return 'throttled';
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

/** The fields of requests that spans show. */
interface TracedInput {
  readonly Bucket?: string;
  readonly Key?: string;
  readonly PartNumber?: number;
}

/**
 * Gives every request of a client a span, if it is sent within a trace: one for all attempts of the SDK. It shows bucket,
 * key and part, and neither bodies nor headers.
 */
export function traceRequests(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = 'Command' }) =>
      (args) => {
        const operation = commandName.replace(/Command$/, '');
        const { Bucket, Key, PartNumber } = args.input as TracedInput;
        const attributes = {
          'rpc.system': 'aws-api',
          'rpc.service': 'S3',
          'rpc.method': operation,
          ...(Bucket !== undefined && { 'aws.s3.bucket': Bucket }),
          ...(Key !== undefined && { 'aws.s3.key': Key }),
          ...(PartNumber !== undefined && { 'aws.s3.part_number': PartNumber }),
        };
        return inSpan(`S3 ${operation}`, { kind: SpanKind.CLIENT, attributes }, async (span) => {
          const done = await next(args);
          const { httpStatusCode, attempts } = done.output.$metadata;
          if (httpStatusCode !== undefined) span?.setAttribute('http.response.status_code', httpStatusCode);
          if (attempts !== undefined) span?.setAttribute('aws.attempts', attempts);
          return done;
        });
      },
    { step: 'initialize', name: 'exportdSpans' },
  );
}
