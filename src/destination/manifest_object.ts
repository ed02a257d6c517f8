/** The manifest of an interval as an object of the bucket: it is replaced by compare-and-set, under a claim of the journal. */
import { PutObjectCommand, type PutObjectCommandInput } from '@aws-sdk/client-s3';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { bounds, boundText } from '../config/bounds.ts';
import type { ForeignBytes } from '../foreign_bytes/foreign_bytes.ts';
import { provesBytes } from './answers.ts';
import {
  DestinationError,
  type ManifestClaim,
  ManifestReplaced,
  type ManifestState,
  type WrittenObject,
} from './destination.ts';
import { conditionFailureCodes, isErrorType, isRefusal } from './errors.ts';
import { formatManifest, type Manifest } from './manifest.ts';
import { parseExpiration } from './object_headers.ts';
import { readText } from './read_object.ts';
import { type S3Requests, sendCommand } from './requests.ts';
import { parseStoredManifest } from './stored_manifest.ts';
import { type ObjectOptions, reportUnconditionalWrites } from './write_object.ts';

/** Reads what is stored under the key of a manifest. @throws DestinationError `ManifestTooLarge` */
export const getManifestObject = async (
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<ManifestState> =>
  readText(requests, key, { maxBytes: bounds.manifest.max, type: 'ManifestTooLarge' }, signal);

/** What may have reached a server. */
interface Sending {
  /** Whether a request may have, also one for credentials. */
  mayHaveArrived: boolean;
  /** How many requests to write the object may have. */
  writes: number;
  /** How many of these the store has refused for good, as a bucket that is read-only. */
  refusals: number;
}

/** The write whose HTTP requests are observed: which had a connection, and could have been sent. */
const observed = new AsyncLocalStorage<Sending>();

// The SDK retries requests by itself and reports the last error only, so errors prove nothing.
subscribe('http.client.request.created', (message) => {
  const sending = observed.getStore();
  if (!sending) return;
  const { request } = message as { readonly request: ClientRequest };
  // The SDK names the operation in the address.
  const isWrite = request.path.includes('x-id=PutObject');
  const markSent = (): void => {
    sending.mayHaveArrived = true;
    if (isWrite) sending.writes += 1;
  };
  request.once('socket', (socket: Socket) => {
    if (socket.connecting) socket.once('connect', markSent);
    else markSent();
  });
});

/** Maximum number of attempts to replace a manifest that others keep changing. */
const maxRounds = 6;

/** Options of a manifest's object. */
interface ManifestOptions extends ObjectOptions {
  /**
   * Whether the store refuses to overwrite, and is not known to accept bytes that differ from their checksum: then its
   * response proves that it stored these bytes under a free key.
   */
  readonly provesWrites: boolean;
  /** Whether it is unknown if the store refuses to overwrite: the manifest is then sent once more to find out. */
  readonly testsConditions: boolean;
}

/**
 * Replaces the manifest by compare-and-set, and reads it back unless the store's response proves it. After each
 * inconclusive response the stored object decides, so repeating is safe at any point. Publishing is claimed before the new
 * manifest is sent; the claim is withdrawn if it was not sent, or if the store refused it.
 * @returns `verified`: whether it is proven; false if the credentials may not read it back
 * @throws ManifestReplaced when this generation of another run, a newer one, or an unknown manifest is stored;
 * DestinationError `ManifestUnreadable` when an object cannot be read and no manifest is known
 */
export async function putManifestObject(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  options: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  const sending: Sending = { mayHaveArrived: false, writes: 0, refusals: 0 };
  try {
    return await replaceManifest(requests, key, claim, sending, options, signal);
  } catch (error) {
    // After a refusal too, nothing is stored: under a claim, a retry would overwrite what this attempt spared.
    const isRefused = sending.writes > 0 && sending.writes === sending.refusals;
    const isStored = sending.mayHaveArrived && !isRefused && !isErrorType(error, unreadable);
    // A claim that cannot be withdrawn stays, and the next attempt continues under it.
    if (!isStored) await claim.withdraw().catch(() => undefined);
    throw error;
  }
}

/** exportd itself could not read a manifest that is too large. @throws DestinationError `ManifestTooLarge` */
function requireReadable(text: string, key: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > bounds.manifest.max)
    throw new DestinationError(
      'ManifestTooLarge',
      `The manifest ${key} would have ${bytes} bytes, and at most ${boundText(bounds.manifest)} are allowed: its files are too many. Raise max_file_size_mb of the destination; for files of earlier generations, backfill with allow_shrink.`,
      { transient: false },
    );
}

async function replaceManifest(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  sending: Sending,
  { provesWrites, testsConditions, ...options }: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  let text = claim.manifest && formatManifest(claim.manifest);
  let last: DestinationError | undefined;
  let conditional = true;
  let expires_at: string | null = null;
  let writtenUnread = false;
  // A request that is repeated after its response was lost is refused because of the own manifest.
  let mayBeOwn = false;
  let overwrites = false;
  for (let round = 0; round < maxRounds; round++) {
    const asksFirst = round > 0 || text !== null || !provesWrites || !claim.expectsNone;
    const current: ManifestState = asksFirst
      ? await getManifestObject(requests, key, signal)
      : { state: 'absent' };
    const isRead = current.state === 'present' && current.text === text;
    if (isRead || (writtenUnread && current.state === 'unreadable')) {
      if (testsConditions && conditional && sending.writes > 0 && text !== null)
        await testConditions(requests, { Key: key, Body: Buffer.from(text), ...options }, signal);
      return isRead
        ? { verified: true, expires_at: current.expires_at ?? expires_at }
        : { verified: false, expires_at };
    }
    if (current.state === 'present') await rejectOther(current.text, claim, requests.foreign);
    text = formatManifest(await claim.hold());
    requireReadable(text, key);
    const body = Buffer.from(text);
    const writesBefore = sending.writes;
    try {
      const conditions = conditional ? conditionsOn(current, overwrites) : {};
      const written = await requests.send('PutObject', signal, (client, call) => {
        const put = new PutObjectCommand({
          Bucket: requests.bucket,
          Key: key,
          Body: body,
          ...options,
          ...conditions,
        });
        return observed.run(sending, () => client.send(put, call));
      });
      expires_at = parseExpiration(written.Expiration);
      const isProven = provesBytes(written, body);
      if (isProven && provesWrites && conditional) return { verified: true, expires_at };
      // What could not be read may have been absent, so it is read once more.
      writtenUnread = isProven && current.state === 'unreadable';
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      // The SDK may have sent it twice: then only the last of them is known to be refused.
      if (isRefusal(error) && sending.writes === writesBefore + 1) sending.refusals += 1;
      if (error.type === 'NotImplemented') {
        conditional = false;
        await reportUnconditionalWrites(requests, { conditional_put: false });
      } else if (!error.transient && error.type !== 'NoSuchKey') throw error;
      const isRefused = error.type === 'NotImplemented' || conditionFailureCodes.has(error.type);
      if (!isRefused || sending.writes > writesBefore + 1) mayBeOwn = true;
      if (current.state === 'unreadable' && error.type === 'PreconditionFailed') {
        if (!mayBeOwn) await requireKnown(key, claim);
        overwrites = true;
      }
      last = error;
    }
  }
  throw (
    last ??
    new DestinationError(
      'ManifestUnverified',
      `The manifest ${key} was written, but its content differs when read back.`,
      { transient: true },
    )
  );
}

/**
 * Finds out whether the store refuses to overwrite, with an object that it has: it may overwrite it with the same bytes.
 * Whatever else happens to the request decides nothing.
 */
async function testConditions(
  requests: S3Requests,
  stored: Pick<PutObjectCommandInput, 'Key' | 'Body'> & ObjectOptions,
  signal: AbortSignal,
): Promise<void> {
  const input = { Bucket: requests.bucket, ...stored, IfNoneMatch: '*' };
  try {
    await sendCommand(requests, PutObjectCommand, input, signal);
  } catch (error) {
    if (isErrorType(error, 'PreconditionFailed')) await requests.learn({ conditional_put: true });
    return;
  }
  await requests.learn({ conditional_put: false });
  requests.report(
    new DestinationError(
      'OverwritesAccepted',
      'The S3 server overwrote an object although the request forbade it. From now on the keys of files have a random mark, and only the journal prevents two runs from overwriting a manifest. Check what serves endpoint_url of the destination, and test the destination again.',
      { transient: false },
    ),
  );
}

const unreadable = 'ManifestUnreadable';

/** Rejects an object that cannot be read and is not the own one, unless it may be a manifest of the journal. */
async function requireKnown(key: string, claim: ManifestClaim): Promise<void> {
  if (await claim.knows(null)) return;
  throw new DestinationError(
    unreadable,
    `The bucket already contains ${key}, which may be a manifest of this interval. exportd has not published one before, or no longer has its history, and ` +
      'may not read it. Grant the credentials s3:GetObject, so that it is compared, or delete the object. Then retry the run.',
    { transient: false },
  );
}

/** Without read permission, a new manifest is assumed at first. After that, only the journal's claim prevents overwriting. */
function conditionsOn(
  current: ManifestState,
  overwrites: boolean,
): { IfMatch?: string; IfNoneMatch?: string } {
  if (current.state === 'unreadable') return overwrites ? {} : { IfNoneMatch: '*' };
  if (current.state === 'absent') return { IfNoneMatch: '*' };
  return { IfMatch: current.etag };
}

/** Whether the run, or one whose files it inherited, wrote a manifest for the same files: a response was lost. */
const isOwn = (
  found: Manifest,
  manifest: Pick<ManifestClaim, 'run_id' | 'claimed_by' | 'generation' | 'files'>,
): boolean =>
  [manifest.run_id, ...manifest.claimed_by].includes(found.run_id) &&
  found.generation === manifest.generation &&
  found.files.length === manifest.files.length &&
  found.files.every(({ key }, index) => key === manifest.files[index]?.key);

/** Whether the manifest of a claim is stored; true if the object cannot be read. */
export async function hasOwnManifest(
  requests: S3Requests,
  key: string,
  claim: ManifestClaim,
  signal: AbortSignal,
): Promise<boolean> {
  const current = await getManifestObject(requests, key, signal);
  if (current.state !== 'present') return current.state === 'unreadable';
  const found = await parseStoredManifest(current.text, requests.foreign);
  return found !== undefined && isOwn(found, claim);
}

async function rejectOther(text: string, claim: ManifestClaim, foreign: ForeignBytes): Promise<void> {
  const found = await parseStoredManifest(text, foreign);
  if (!found || isOwn(found, claim)) return;
  if (found.generation < claim.generation && (await claim.knows(found))) return;
  throw new ManifestReplaced(found, claim.generation);
}
