import type { KeySource } from '../destination.ts';
import { prefixesOverlap } from './prefix_overlap.ts';

/** What of a stored config decides over its keys. */
interface KeyFields {
  readonly bucket_name: string;
  readonly region: string;
  readonly prefix: string;
  readonly endpoint_url: string | null;
  readonly file_format: string;
  readonly compression: string | null;
  /** Missing in configs of versions that knew no other way than to fail. */
  readonly on_bad_row?: string;
}

/**
 * Whether two exports write the same keys for an interval that both have. Manifests never meet: their keys hold the
 * export's id.
 */
export function keysCollide(one: KeySource, other: KeySource): boolean {
  const first = fieldsOf(one);
  const second = fieldsOf(other);
  return (
    isSameBucket(first, second) &&
    shareAnEnding(first, second) &&
    prefixesOverlap(
      { template: first.prefix, table: one.model },
      { template: second.prefix, table: other.model },
    )
  );
}

/** Every stored config was checked and has these members. */
const fieldsOf = ({ config }: KeySource): KeyFields => config as unknown as KeyFields;

/** Whether two configs lead to one bucket. */
export const isSameBucket = (
  one: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
  other: Pick<KeyFields, 'bucket_name' | 'region' | 'endpoint_url'>,
): boolean => one.bucket_name === other.bucket_name && storeOf(one) === storeOf(other);

const amazonHost = /(^|\.)amazonaws\.com(\.cn)?$/;

/** Within one store the name of a bucket means one bucket. At AWS that is a partition: the world, China or GovCloud. */
function storeOf({ endpoint_url, region }: Pick<KeyFields, 'endpoint_url' | 'region'>): string {
  const url = endpoint_url === null ? undefined : new URL(endpoint_url);
  const host = url?.hostname.replace(/\.$/, '');
  if (!url || !host || amazonHost.test(host)) return `aws ${/^(cn|us-gov)-/.exec(region)?.[1] ?? ''}`;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return `${host}:${port}${url.pathname.replace(/\/+$/, '')}`;
}

/** Whether files of both can end alike. Rejected rows are lines of JSON beside files of every format. */
const shareAnEnding = (one: KeyFields, other: KeyFields): boolean =>
  extensionOf(one) === extensionOf(other) || (one.on_bad_row === 'reject' && other.on_bad_row === 'reject');

/** Parquet compresses inside the file, whose name stays the same. */
const extensionOf = ({ file_format, compression }: KeyFields): string =>
  file_format === 'Parquet' ? file_format : `${file_format} ${compression ?? ''}`;
