import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { DestinationError, type ManifestState } from '../destination.ts';
import { manifestText, parseManifest, type Manifest } from '../manifest.ts';
import type { ObjectOptions } from './multipart.ts';
import type { S3Requests } from './requests.ts';
import { unconditionalStore } from './unconditional_store.ts';

/** Looks and writes this often before a manifest that keeps changing under us is given up. */
const roundsMaximum = 6;

/** What stands in the place of a manifest. */
export async function getManifestObject(
  requests: S3Requests,
  key: string,
  signal: AbortSignal,
): Promise<ManifestState> {
  try {
    const { etag, text } = await requests.send('GetObject', signal, async (client, call) => {
      const output = await client.send(new GetObjectCommand({ Bucket: requests.bucket, Key: key }), call);
      return { etag: output.ETag, text: (await output.Body?.transformToString()) ?? '' };
    });
    return { state: 'present', etag, text };
  } catch (error) {
    if (error instanceof DestinationError && (error.type === 'NoSuchKey' || error.type === 'NotFound'))
      return { state: 'absent' };
    if (error instanceof DestinationError && error.type === 'AccessDenied') return { state: 'unreadable' };
    throw error;
  }
}

/**
 * Replaces the manifest by compare-and-set and reads it back. What stands in the bucket decides after every doubtful
 * reply, so a repeat is safe at any point.
 * @returns whether it was read back.
 * @throws DestinationError `ManifestReplaced` when this or a newer generation of another run stands there.
 */
export async function putManifestObject(
  requests: S3Requests,
  key: string,
  manifest: Manifest,
  options: ObjectOptions,
  signal: AbortSignal,
): Promise<{ verified: boolean }> {
  const text = manifestText(manifest);
  let last = new DestinationError(
    'ManifestUnverified',
    `The manifest ${key} was written but reads back as something else.`,
    { transient: true },
  );
  let conditional = true;
  for (let round = 0; round < roundsMaximum; round++) {
    const current = await getManifestObject(requests, key, signal);
    if (current.state === 'present' && current.text === text) return { verified: true };
    if (current.state === 'present') refuseNewer(current.text, manifest);
    try {
      const conditions = conditional ? conditionsOn(current, round) : {};
      await requests.send('PutObject', signal, (client, call) =>
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
      if (current.state === 'unreadable') return { verified: false };
    } catch (error) {
      if (!(error instanceof DestinationError)) throw error;
      if (error.type === 'NotImplemented') {
        conditional = false;
        requests.tell(unconditionalStore());
      } else if (!error.transient && error.type !== 'NoSuchKey') throw error;
      last = error;
    }
  }
  throw last;
}

/** Where nothing can be read, the first round hopes for a new manifest; then the journal's claim alone is the fence. */
function conditionsOn(current: ManifestState, round: number): { IfMatch?: string; IfNoneMatch?: string } {
  if (current.state === 'unreadable') return round === 0 ? { IfNoneMatch: '*' } : {};
  if (current.state === 'absent') return { IfNoneMatch: '*' };
  return current.etag === undefined ? {} : { IfMatch: current.etag };
}

function refuseNewer(text: string, manifest: Manifest): void {
  const found = parseManifest(text);
  if (!found || found.generation < manifest.generation) return;
  if (found.generation === manifest.generation && found.run_id === manifest.run_id) return;
  throw new DestinationError(
    'ManifestReplaced',
    `The bucket already holds generation ${found.generation} of this interval's manifest, written by run ${found.run_id}; ` +
      `generation ${manifest.generation} is not published over it.`,
    { transient: false },
  );
}
