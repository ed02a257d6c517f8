/** Clients that destinations with the same access share, kept for a moment after their last use. */
import { S3Client } from '@aws-sdk/client-s3';
import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { S3Config } from './config.ts';
import { createS3Client } from './s3_client.ts';

/** A client for exclusive use until it is released. */
interface PooledClient {
  readonly client: S3Client;
  /**
   * Has no effect the second time. With `reusable: false`, after an error that a new client may not have, the client
   * is destroyed.
   */
  release(how: { readonly reusable: boolean }): void;
}

/** A client that can be acquired. */
interface IdleClient {
  readonly client: S3Client;
  readonly access: string;
  readonly end: NodeJS.Timeout;
}

/**
 * Idle time in milliseconds before a client is destroyed. Activities of runs that are due together follow each other
 * faster, and servers close idle connections.
 */
const idleTimeoutMs = 2_000;
/** Maximum number of idle clients. */
const maxIdleClients = 32;

/**
 * Idle clients by settings, because clients depend on them. A destination test has separate settings, and therefore a
 * new client.
 */
const idleClients = new WeakMap<Settings, Set<IdleClient>>();

/**
 * Acquires a client for a config: an idle one with open connections, or a new one, which costs as much CPU time as
 * several requests. Clients are never shared, so a slow bucket does not delay other exports.
 * @throws DestinationError when the endpoint is not allowed
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
  let inUse = true;
  return {
    client,
    release: ({ reusable }) => {
      if (!inUse) return;
      inUse = false;
      if (!reusable || idle.size >= maxIdleClients) {
        client.destroy();
        return;
      }
      const end = setTimeout(() => {
        idle.delete(waiting);
        client.destroy();
      }, idleTimeoutMs).unref();
      const waiting: IdleClient = { client, access, end };
      idle.add(waiting);
    },
  };
}

/** A digest of the config fields that a client depends on, including secrets. */
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
