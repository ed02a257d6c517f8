/** A span for each request to an S3 server. */
import { S3Client } from '@aws-sdk/client-s3';
import { inSpan, SpanKind } from '../tracing/spans.ts';

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
