/** What an answer of a store has to say before exportd believes it. Its status alone proves nothing: any server sends one. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import type { PutObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import { DestinationError } from './destination.ts';
import { notAnS3Server } from './errors.ts';
import { redirectOf } from './redirects.ts';

/** The least that a true success has. README.md says what follows from each. */
interface Success {
  readonly status: number;
  readonly header?: string;
  /** The root element of its body: one of these, of which the first is that of S3. */
  readonly roots?: readonly string[];
  /** Elements of the body of which one has to be there, with a value. */
  readonly oneOf?: readonly string[];
}

const deleted: Success = { status: 204 };
const successes: Readonly<Record<string, Success>> = {
  PutObject: { status: 200, header: 'etag' },
  CreateMultipartUpload: {
    status: 200,
    // rclone has the second.
    roots: ['InitiateMultipartUploadResult', 'InitiateMultipartUpload'],
    oneOf: ['UploadId'],
  },
  UploadPart: { status: 200, header: 'etag' },
  CompleteMultipartUpload: { status: 200, roots: ['CompleteMultipartUploadResult'], oneOf: ['ETag'] },
  AbortMultipartUpload: deleted,
  ListParts: { status: 200, roots: ['ListPartsResult'], oneOf: ['UploadId', 'Key', 'Bucket'] },
  ListMultipartUploads: { status: 200, roots: ['ListMultipartUploadsResult'], oneOf: ['Bucket'] },
  ListObjectsV2: { status: 200, roots: ['ListBucketResult'], oneOf: ['Name', 'KeyCount'] },
  GetObject: { status: 200, header: 'etag' },
  GetObjectRetention: { status: 200, oneOf: ['RetainUntilDate'] },
  HeadObject: { status: 200, header: 'etag' },
  DeleteObject: deleted,
};

/** The type of the error for an answer that is no success although its status is one. The request may have been carried out. */
export const unproven = 'UnexpectedResponse';

/** An answer of a server that lacks something. */
export const unprovenAnswer = (operation: string, status: number, lacks: string): DestinationError =>
  new DestinationError(
    unproven,
    `The response to ${operation} (status ${status}) lacks ${lacks}, so it proves nothing; check that endpoint_url of the destination is an S3 server, and what is in front of it.`,
    // What cannot answer the request of a probe is no store: runs wait, as for one that does not respond.
    { transient: true, unavailable: operation === 'HeadObject' },
  );

/** The answer to a write lacks what `provesBytes` asks for, and the object is not there. */
export const unprovenBytes = (): DestinationError =>
  unprovenAnswer('PutObject', 200, 'the MD5 of the object as its ETag');

/** A response, as the SDK has it before it reads it. Bodies are complete, except those of objects. */
interface Answer {
  statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  body: unknown;
}

/** The name of the root element of a document, which has its end too; null of anything else. */
function rootOf(text: string): string | null {
  const [, name = ''] = /^(?:<\?xml[^>]*\?>)?\s*<([A-Za-z_][\w.:-]*)[\s/>]/.exec(text) ?? [];
  if (!text.endsWith(`</${name}>`) && !/^(?:<\?xml[^>]*\?>)?\s*<[^>]*\/>$/.test(text)) return null;
  return name.slice(name.indexOf(':') + 1);
}

/**
 * Whether a document has an element with a value. Linear in its text, which a hostile server writes: each part of it is looked
 * at once, and after a tag the search goes on behind its end.
 */
function hasValue(text: string, element: string): boolean {
  for (let at = text.indexOf(element); at >= 0;) {
    let end = at + element.length;
    if (opensTag(text, at) && /[\s>]/.test(text.charAt(end))) {
      end = text.indexOf('>', end);
      if (end < 0) return false;
      const next = text[end + 1];
      if (next !== undefined && next !== '<') return true;
    }
    at = text.indexOf(element, end);
  }
  return false;
}

/** Whether the name at a position is that of an opening tag, also with a prefix: `<ETag`, `<s3:ETag`. */
function opensTag(text: string, at: number): boolean {
  if (text[at - 1] !== ':') return text[at - 1] === '<';
  let start = at - 1;
  while (start > 0 && /[\w.-]/.test(text.charAt(start - 1))) start -= 1;
  return start < at - 1 && text[start - 1] === '<';
}

/** Lets no answer pass that is neither a success of its request nor an error of S3. */
export function requireAnswers(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName = 'Command' }) =>
      async (args) => {
        const received = await next(args);
        const { headers } = args.request as { readonly headers: Readonly<Record<string, string>> };
        const answer = received.response as Answer;
        try {
          requireAnswer(commandName.replace(/Command$/, ''), headers.range, answer);
        } catch (error) {
          // An object that is not read would keep its connection.
          if (answer.body instanceof Readable) answer.body.destroy();
          throw error;
        }
        return received;
      },
    // Next to the connection: the SDK has not read the response yet.
    { step: 'deserialize', priority: 'low', name: 'requireAnswers' },
  );
}

/**
 * @param range the header of a request for a part of an object
 * @throws DestinationError `UnexpectedResponse`, `NotAnS3Server`
 */
function requireAnswer(operation: string, range: string | undefined, answer: Answer): void {
  const success = successes[operation];
  const { statusCode: status } = answer;
  const isObject = operation === 'GetObject' && status < 300;
  const redirect = redirectOf(operation, status, answer.headers);
  if (redirect) throw redirect;
  // An answer to HEAD has no body.
  if (!success || (operation === 'HeadObject' && status >= 400)) return;
  // S3 sends blanks in front while it joins the parts of a large file.
  const text = isObject
    ? ''
    : Buffer.from(answer.body as Uint8Array)
        .toString('utf8')
        .trim();
  const root = rootOf(text);
  if (root === 'Error') {
    // The SDK reads it as an error. S3 has begun its answer with 200 before it knew.
    if (status < 300) answer.statusCode = 503;
    answer.body = Buffer.from(text);
    return;
  }
  if (status >= 300) throw notAnS3Server(operation, status);
  const lacks = (what: string): DestinationError => unprovenAnswer(operation, status, what);
  const expected = range === undefined ? success.status : 206;
  if (status !== expected) throw lacks(`the status ${expected}`);
  if (range !== undefined && !isPartOf(range, answer.headers['content-range']))
    throw lacks(`the range that was asked for (${range})`);
  if (success.header !== undefined && !answer.headers[success.header]) throw lacks('an ETag');
  if (success.roots && !success.roots.some((name) => name === root))
    throw lacks(`the element ${success.roots[0]}`);
  if (success.oneOf && !success.oneOf.some((element) => hasValue(text, element)))
    throw lacks(`the element ${success.oneOf.join(' or ')}`);
}

/** Whether a `Content-Range` begins where a `Range` does. */
const isPartOf = (range: string, contentRange = ''): boolean =>
  contentRange.startsWith(range.replace('=', ' '));

/** A value of an answer. @param max its characters, where it is stored */
export function requireField(
  operation: string,
  value: string | undefined,
  what: string,
  max = Infinity,
): string {
  if (value === undefined || value === '') throw unprovenAnswer(operation, 200, what);
  if (value.length > max) throw unprovenAnswer(operation, 200, `${what} of at most ${max} characters`);
  return value;
}

export const withoutQuotes = (etag: string | undefined): string => (etag ?? '').replaceAll('"', '');

/**
 * Whether an answer says that the store has these bytes: by the checksum that they were sent with, else by their MD5, which is the
 * ETag of what is not encrypted with a key of KMS or of the client.
 */
export const provesBytes = (
  { ChecksumCRC32, ETag }: Pick<PutObjectCommandOutput, 'ChecksumCRC32' | 'ETag'>,
  bytes: Buffer,
): boolean => {
  if (ChecksumCRC32 === undefined)
    return withoutQuotes(ETag) === createHash('md5').update(bytes).digest('hex');
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return ChecksumCRC32 === sum.toString('base64');
};

/** Whether an answer says that the store has joined these parts: `joined` by their MD5, or `as many` by their number. */
export function provenParts(
  etag: string | undefined,
  parts: readonly { readonly etag: string }[],
): 'joined' | 'as many' | null {
  const md5 = createHash('md5');
  for (const part of parts) md5.update(Buffer.from(withoutQuotes(part.etag), 'hex'));
  const given = withoutQuotes(etag);
  if (given === `${md5.digest('hex')}-${parts.length}`) return 'joined';
  return given.endsWith(`-${parts.length}`) ? 'as many' : null;
}
