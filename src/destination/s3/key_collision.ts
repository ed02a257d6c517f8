import type { KeySource } from '../destination_type.ts';
import { prefixesOverlap } from './prefix_overlap.ts';

/** The fields of a stored config that determine its keys. */
interface KeyFields {
  readonly bucket_name: string;
  readonly region: string;
  readonly prefix: string;
  readonly endpoint_url: string | null;
  readonly file_format: string;
  readonly compression: string | null;
  readonly on_bad_row: string;
}

/**
 * Whether two exports write the same keys for a common interval. Manifests never collide, because their keys contain
 * the id of the export.
 */
export function keysCollide(one: KeySource, other: KeySource): boolean {
  const first = fieldsOf(one);
  const second = fieldsOf(other);
  return (
    isSameBucket(first, second) &&
    canShareExtension(first, second) &&
    prefixesOverlap(
      { template: first.prefix, table: one.model },
      { template: second.prefix, table: other.model },
    )
  );
}

/** Every stored config was validated and has these fields. */
const fieldsOf = ({ config }: KeySource): KeyFields => config as unknown as KeyFields;

/** Whether two configs lead to the same bucket. */
export const isSameBucket = (
  one: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
  other: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
): boolean => bucketIdentity(one) === bucketIdentity(other);

/** Identifies the bucket of a stored config. */
export const locationOf = (config: Readonly<Record<string, unknown>>): string =>
  bucketIdentity(config as unknown as KeyFields);

const bucketIdentity = (config: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>): string =>
  `${storeOf(config)}/${config.bucket_name}`;

const amazonHost = /(^|\.)amazonaws\.com(\.cn)?$/;

/** Identifies a store, within which a bucket name is unique. In AWS it is a partition: standard, China or GovCloud. */
function storeOf({ endpoint_url, region }: Pick<KeyFields, 'endpoint_url' | 'region'>): string {
  const url = endpoint_url === null ? undefined : new URL(endpoint_url);
  const host = url?.hostname.replace(/\.$/, '');
  if (!url || !host || amazonHost.test(host)) return `aws ${/^(cn|us-gov)-/.exec(region)?.[1] ?? ''}`;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return `${host}:${port}${url.pathname.replace(/\/+$/, '')}`;
}

/** Whether both can write keys with the same extension. Rejected rows are JSON lines for every format. */
const canShareExtension = (one: KeyFields, other: KeyFields): boolean =>
  extensionOf(one) === extensionOf(other) || (one.on_bad_row === 'reject' && other.on_bad_row === 'reject');

/** Parquet compresses inside the file, so its extension does not depend on the compression. */
const extensionOf = ({ file_format, compression }: KeyFields): string =>
  file_format === 'Parquet' ? file_format : `${file_format} ${compression ?? ''}`;
