import { createHash } from 'node:crypto';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Settings } from '../../config/settings.ts';
import { createS3Client } from './client.ts';
import type { S3Config } from './config.ts';

/** A client that belongs to its borrower alone until it is given back. */
export interface PooledClient {
  readonly client: S3Client;
  /** A second time does nothing. With `reusable: false`, after a fault that a fresh client may not have, it is destroyed. */
  release(how: { readonly reusable: boolean }): void;
}

/** A client that waits for its next borrower. */
interface IdleClient {
  readonly client: S3Client;
  readonly access: string;
  readonly end: NodeJS.Timeout;
}

/** How long it waits: the activities of runs that are due together follow each other faster, and servers close sooner or later what is idle. */
const idleMs = 2_000;
/** How many wait at once. */
const idleMaximum = 32;

/** By settings, since clients follow them. A destination that is tested has settings of its own, and so a fresh client. */
const idleClients = new WeakMap<Settings, Set<IdleClient>>();

/**
 * Lends a client for one config: one that was given back just now with its connections, or a new one, which costs as
 * much CPU time as several requests. None is ever shared, so a slow bucket delays nobody else.
 * @throws DestinationError when the endpoint is one that this installation does not allow.
 */
export function acquireS3Client(config: S3Config, settings: Settings): PooledClient {
  const idle = idleClients.get(settings) ?? new Set();
  idleClients.set(settings, idle);
  const access = accessOf(config);
  const found = [...idle].findLast((waiting) => waiting.access === access);
  if (found) {
    clearTimeout(found.end);
    idle.delete(found);
  }
  const client = found?.client ?? createS3Client(config, settings);
  let lent = true;
  return {
    client,
    release: ({ reusable }) => {
      if (!lent) return;
      lent = false;
      if (!reusable || idle.size >= idleMaximum) {
        client.destroy();
        return;
      }
      const end = setTimeout(() => {
        idle.delete(waiting);
        client.destroy();
      }, idleMs).unref();
      const waiting: IdleClient = { client, access, end };
      idle.add(waiting);
    },
  };
}

/** What a client is made from, as a digest: whoever has another secret never gets it. */
function accessOf(config: S3Config): string {
  const { region, endpoint_url, use_virtual_style_addressing, role_arn, external_id } = config;
  const { aws_access_key_id = null, aws_secret_access_key = null } = config;
  const fields = [
    region,
    endpoint_url,
    use_virtual_style_addressing,
    role_arn,
    external_id,
    aws_access_key_id,
    aws_secret_access_key,
  ];
  return createHash('sha256').update(JSON.stringify(fields)).digest('base64');
}
