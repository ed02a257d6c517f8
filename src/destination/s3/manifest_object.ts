import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { DestinationError, type ManifestState, type WrittenObject } from '../destination.ts';
import { formatManifest, parseManifest, type Manifest } from '../manifest.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { conditionalWritesUnsupported } from './conditional_writes.ts';
import { parseExpiration } from './expiration.ts';

/** Maximum number of attempts to replace a manifest that others keep changing. */
const maxRounds = 6;

/** Reads what is stored under the key of a manifest. */
export async function getManifestObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<ManifestState> {
  try {
    const found = await requests.send('GetObject', signal, async (client, call) => {
      const output = await client.send(new GetObjectCommand({ Bucket: requests.bucket, Key: key }), call);
      return {
        etag: output.ETag,
        text: (await output.Body?.transformToString()) ?? '',
        expires_at: parseExpiration(output.Expiration),
      };
    });
    return { state: 'present', ...found };
  } catch (error) {
    if (error instanceof DestinationError && (error.type === 'NoSuchKey' || error.type === 'NotFound'))
      return { state: 'absent' };
    if (error instanceof DestinationError && error.type === 'AccessDenied') return { state: 'unreadable' };
    throw error;
  }
}

/**
 * Replaces the manifest by compare-and-set and reads it back. After each inconclusive response the stored object
 * decides, so repeating is safe at any point.
 * @returns `verified`: whether it was read back
 * @throws DestinationError `ManifestReplaced` when this generation of another run or a newer generation is stored
 */
export async function putManifestObject(
  requests: S3Requests,
  key: string,
  manifest: Manifest,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<WrittenObject & { readonly verified: boolean }> {
  const text = formatManifest(manifest);
  let last = new DestinationError(
    'ManifestUnverified',
    `The manifest ${key} was written, but its content differs when read back.`,
    { transient: true },
  );
  let conditional = true;
  let expires_at: string | null = null;
  let writtenUnread = false;
  for (let round = 0; round < maxRounds; round++) {
    const current = await getManifestObject(requests, key, signal);
    if (writtenUnread && current.state === 'unreadable') return { verified: false, expires_at };
    if (current.state === 'present' && current.text === text)
      return { verified: true, expires_at: current.expires_at ?? expires_at };
    if (current.state === 'present') rejectNewer(current.text, manifest);
    try {
      const conditions = conditional ? conditionsOn(current, round) : {};
      const { Expiration } = await requests.send('PutObject', signal, (client, call) =>
        client.send(
          new PutObjectCommand({
            Bucket: requests.bucket,
            Key: key,
            Body: Buffer.from(text),
            ...options,
            ...conditions,
          }),
          call,
        ),
      );
      expires_at = parseExpiration(Expiration);
      // What could not be read may have been absent, so it is read once more.
      writtenUnread = current.state === 'unreadable';
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      if (error.type === 'NotImplemented') {
        conditional = false;
        requests.report(conditionalWritesUnsupported());
      } else if (!error.transient && error.type !== 'NoSuchKey') throw error;
      last = error;
    }
  }
  throw last;
}

/**
 * Without read permission, the first round assumes a new manifest. After that, only the journal's claim prevents
 * overwriting.
 */
function conditionsOn(current: ManifestState, round: number): { IfMatch?: string; IfNoneMatch?: string } {
  if (current.state === 'unreadable') return round === 0 ? { IfNoneMatch: '*' } : {};
  if (current.state === 'absent') return { IfNoneMatch: '*' };
  return current.etag === undefined ? {} : { IfMatch: current.etag };
}

function rejectNewer(text: string, manifest: Manifest): void {
  const found = parseManifest(text);
  if (!found || found.generation < manifest.generation) return;
  if (found.generation === manifest.generation && found.run_id === manifest.run_id) return;
  throw new DestinationError(
    'ManifestReplaced',
    `The bucket already contains generation ${found.generation} of this interval's manifest, written by run ${found.run_id}; ` +
      `generation ${manifest.generation} does not replace it.`,
    { transient: false },
  );
}
