import { createHash } from 'node:crypto';
import { HeadObjectCommand } from '@aws-sdk/client-s3';
import type { Settings } from '../../config/settings.ts';
import { DestinationError } from '../destination.ts';
import { acquireS3Client } from './client_pool.ts';
import type { S3Config } from './config.ts';
import { toDestinationError } from './errors.ts';
import { constantPrefix } from './prefix.ts';

/**
 * What the requests of a config are sent to: server, region and bucket. The style of addresses is part of it, because it
 * changes the host name, and so is the use of a role, because AWS STS may be unavailable.
 */
export function circuitOf(config: Readonly<Record<string, unknown>>): string {
  const { endpoint_url, use_virtual_style_addressing, region, bucket_name, role_arn } = config;
  const fields = [
    endpoint_url,
    use_virtual_style_addressing,
    region,
    bucket_name,
    typeof role_arn === 'string',
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64url');
}

/** A key below the prefix that nothing is written to: the credentials may be restricted to it. */
const probeKey = (prefix: string): string =>
  [constantPrefix(prefix), '_exportd_probe'].filter((segment) => segment !== '').join('/');

/**
 * Asks for an object that does not exist.
 * @throws DestinationError with `unavailable` when the server does not respond
 */
export async function probeS3(config: S3Config, settings: Settings): Promise<void> {
  const pooled = acquireS3Client(config, settings);
  const signal = AbortSignal.timeout(settings.EXPORTD_S3_PROBE_TIMEOUT);
  let reusable = true;
  try {
    const object = { Bucket: config.bucket_name, Key: probeKey(config.prefix) };
    await pooled.client.send(new HeadObjectCommand(object), { abortSignal: signal });
  } catch (error) {
    const failure = toDestinationError(error, 'HeadObject', config.bucket_name);
    const timedOut = signal.aborted && !(error instanceof DestinationError);
    reusable = !timedOut && !failure.unavailable;
    if (timedOut)
      throw new DestinationError(
        'S3Unreachable',
        `The S3 server did not respond in ${settings.EXPORTD_S3_PROBE_TIMEOUT} ms; check endpoint_url of the destination and whether the server is running.`,
        { transient: true, unavailable: true },
      );
    if (failure.unavailable) throw failure;
  } finally {
    pooled.release({ reusable });
  }
}
