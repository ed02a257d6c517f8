/** Lists and opens what a bucket has, for those who check it. Lists have a bound, whatever the server returns. */
import { ListObjectsV2Command, type ListObjectsV2CommandOutput } from '@aws-sdk/client-s3';
import { type Bound, bounds, boundText, safeText } from '../config/bounds.ts';
import type { ForeignBytes } from '../foreign_bytes/foreign_bytes.ts';
import { requireField } from './answers.ts';
import type { S3Config } from './config.ts';
import { DestinationError, type OpenObject } from './destination.ts';
import { openObject } from './read_object.ts';
import { createS3Requests, type DestinationContext, type S3Requests, sendCommand } from './requests.ts';

/** Reads the bucket of a config. All methods throw DestinationError. */
export interface BucketReader {
  /** Lists the keys that start with `prefix`, in bucket order. What a server lists of others is never opened. */
  listKeys(prefix: string, signal: AbortSignal): AsyncGenerator<string>;
  /** Opens the object under `key`; null if it does not exist. */
  open(key: string, signal: AbortSignal): Promise<OpenObject | null>;
  /** The full name of an object for messages. */
  nameOf(key: string): string;
  /** Reads what the objects are. */
  readonly foreign: ForeignBytes;
  readonly close: () => void;
}

/** Opens the bucket of a config for reading, with the same retry budget as an export. */
export function openBucketReader(config: S3Config, context: DestinationContext): BucketReader {
  const requests = createS3Requests(config, context);
  return {
    listKeys: (prefix, signal) => listKeys(requests, prefix, signal),
    open: (key, signal) => openObject(requests, key, signal),
    nameOf: (key) => `s3://${requests.bucket}/${key}`,
    foreign: requests.foreign,
    close: requests.close,
  };
}

async function* listKeys(requests: S3Requests, prefix: string, signal: AbortSignal): AsyncGenerator<string> {
  const advance = listProgress('ListObjectsV2', bounds.listedKeys);
  let token: string | undefined;
  do {
    const input = {
      Bucket: requests.bucket,
      Prefix: prefix,
      ...(token !== undefined && { ContinuationToken: token }),
    };
    const page: ListObjectsV2CommandOutput = await sendCommand(requests, ListObjectsV2Command, input, signal);
    const keys = (page.Contents ?? []).flatMap(({ Key }) => Key ?? []);
    const other = keys.find((key) => !key.startsWith(prefix));
    if (other !== undefined)
      throw new DestinationError(
        'UnexpectedResponse',
        `The S3 server lists ${safeText(other)} below ${prefix}; check that endpoint_url is an S3 server.`,
        { transient: false },
      );
    token = nextToken(page);
    if (token !== undefined) advance(keys.length, token, keys.at(-1));
    yield* keys;
  } while (token !== undefined);
}

/** Where a list continues; undefined at its end. @throws DestinationError for a page that is neither */
export function nextToken({
  IsTruncated,
  NextContinuationToken: token,
}: Pick<ListObjectsV2CommandOutput, 'IsTruncated' | 'NextContinuationToken'>): string | undefined {
  return IsTruncated === true ? requireField('ListObjectsV2', token, 'NextContinuationToken') : undefined;
}

/** Keys of a full page of a list. */
const fullPage = 1_000;

/**
 * Creates a function to call for each page but the last of a list, with its length and what follows it. A hostile or broken
 * server may send pages without an end.
 * @throws DestinationError `UnexpectedResponse` for a page that repeats the one before, `ListTooLong`
 */
export function listProgress(
  operation: string,
  bound: Bound,
): (length: number, ...positions: readonly (string | undefined)[]) => void {
  let total = 0;
  let before: readonly (string | undefined)[] = [];
  return (length, ...positions) => {
    if (positions.some((position, index) => position !== undefined && position === before[index]))
      throw new DestinationError(
        'UnexpectedResponse',
        `The S3 server repeats a page of ${operation}; check that endpoint_url is an S3 server.`,
        { transient: false },
      );
    before = positions;
    // A page without entries counts as a full one: it costs as much.
    total += length === 0 ? fullPage : length;
    if (total > bound.max)
      throw new DestinationError(
        'ListTooLong',
        `The S3 server lists more than ${boundText(bound)} entries (${operation}); check what else writes under the prefix.`,
        { transient: false },
      );
  };
}
