/** The manifest of an interval as an object of the bucket, which is replaced by compare-and-set. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { PutObjectCommand, type PutObjectCommandInput } from '@aws-sdk/client-s3';
import {
  DestinationError,
  ManifestReplaced,
  type ManifestPublication,
  type ManifestState,
  type WrittenObject,
} from './destination.ts';
import { conditionFailureCodes } from './errors.ts';
import { formatManifest, parseManifest, type Manifest } from './manifest.ts';
import {
  getManifestObject,
  isErrorType,
  parseExpiration,
  reportUnconditionalWrites,
  type ObjectOptions,
} from './objects.ts';
import { sendCommand, type S3Requests } from './requests.ts';

/** What may have reached a server. */
interface Sending {
  /** Whether a request may have, also one for credentials. */
  mayHaveArrived: boolean;
  /** How many requests to write the object may have. */
  writes: number;
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
  publication: ManifestPublication,
  options: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  const sending: Sending = { mayHaveArrived: false, writes: 0 };
  let claimed: string | undefined;
  const claim = async (): Promise<string> => (claimed ??= formatManifest(await publication.claim()));
  try {
    return await replaceManifest(requests, key, { publication, claim, sending }, options, signal);
  } catch (error) {
    // After a refusal too, nothing is stored: under a claim, a retry would overwrite what this attempt spared.
    const isStored = sending.mayHaveArrived && !isErrorType(error, unreadable);
    // A claim that cannot be withdrawn stays, and the next attempt continues under it.
    if (claimed !== undefined && !isStored) await publication.withdraw().catch(() => undefined);
    throw error;
  }
}

/** A publication with its claim, which is made once. */
interface Replacement {
  readonly publication: ManifestPublication;
  /** Claims publishing and returns the text of the manifest. */
  readonly claim: () => Promise<string>;
  readonly sending: Sending;
}

async function replaceManifest(
  requests: S3Requests,
  key: string,
  { publication, claim, sending }: Replacement,
  { provesWrites, testsConditions, ...options }: ManifestOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  let text = publication.claimed && formatManifest(publication.claimed);
  let last = new DestinationError(
    'ManifestUnverified',
    `The manifest ${key} was written, but its content differs when read back.`,
    { transient: true },
  );
  let conditional = true;
  let expires_at: string | null = null;
  let writtenUnread = false;
  // A request that is repeated after its response was lost is refused because of the own manifest.
  let mayBeOwn = false;
  let overwrites = false;
  for (let round = 0; round < maxRounds; round++) {
    const asksFirst = round > 0 || text !== null || !provesWrites || !publication.expectsNone;
    const current: ManifestState = asksFirst
      ? await getManifestObject(requests, key, signal)
      : { state: 'absent' };
    if (writtenUnread && current.state === 'unreadable') return { verified: false, expires_at };
    if (current.state === 'present' && current.text === text) {
      if (testsConditions && conditional && sending.writes > 0)
        await testConditions(requests, { Key: key, Body: text, ...options }, signal);
      return { verified: true, expires_at: current.expires_at ?? expires_at };
    }
    if (current.state === 'present') await rejectOther(current.text, publication);
    text = await claim();
    const body = Buffer.from(text);
    const writesBefore = sending.writes;
    try {
      const conditions = conditional ? conditionsOn(current, overwrites) : {};
      const { Expiration } = await requests.send('PutObject', signal, (client, call) => {
        const put = new PutObjectCommand({
          Bucket: requests.bucket,
          Key: key,
          Body: body,
          ...options,
          ...conditions,
        });
        return observed.run(sending, () => client.send(put, call));
      });
      expires_at = parseExpiration(Expiration);
      if (provesWrites && conditional) return { verified: true, expires_at };
      // What could not be read may have been absent, so it is read once more.
      writtenUnread = current.state === 'unreadable';
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      if (error.type === 'NotImplemented') {
        conditional = false;
        await reportUnconditionalWrites(requests, { conditional_put: false });
      } else if (!error.transient && error.type !== 'NoSuchKey') throw error;
      const isRefused = error.type === 'NotImplemented' || conditionFailureCodes.has(error.type);
      if (!isRefused || sending.writes > writesBefore + 1) mayBeOwn = true;
      if (current.state === 'unreadable' && error.type === 'PreconditionFailed') {
        if (!mayBeOwn) await requireKnown(key, publication);
        overwrites = true;
      }
      last = error;
    }
  }
  throw last;
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
    await requests.learn({ conditional_put: false });
  } catch (error) {
    if (isErrorType(error, 'PreconditionFailed')) await requests.learn({ conditional_put: true });
  }
}

const unreadable = 'ManifestUnreadable';

/** Rejects an object that cannot be read and is not the own one, unless it may be a manifest of the journal. */
async function requireKnown(key: string, publication: ManifestPublication): Promise<void> {
  if (await publication.knows(null)) return;
  throw new DestinationError(
    unreadable,
    `The bucket already contains ${key}, which may be a manifest of this interval. exportd has not published one before, and ` +
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
  return current.etag === undefined ? {} : { IfMatch: current.etag };
}

/** Whether the run wrote a manifest for the same files: a response was lost. */
const isOwn = (found: Manifest, manifest: ManifestPublication): boolean =>
  found.run_id === manifest.run_id &&
  found.generation === manifest.generation &&
  found.files.length === manifest.files.length &&
  found.files.every(({ key }, index) => key === manifest.files[index]?.key);

async function rejectOther(text: string, publication: ManifestPublication): Promise<void> {
  const found = parseManifest(text);
  if (!found || isOwn(found, publication)) return;
  if (found.generation < publication.generation && (await publication.knows(found))) return;
  throw new ManifestReplaced(found, publication.generation);
}
