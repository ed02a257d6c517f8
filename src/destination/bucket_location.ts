/** Which bucket and which server a config leads to. */

/** The fields of a config that name its bucket. Every stored config was validated and has them. */
interface BucketFields {
  readonly bucket_name: string;
  readonly region: string;
  readonly endpoint_url: string | null;
}

/** Server and bucket of a stored config, which determine the traits of its store. */
export function locationOf(config: Readonly<Record<string, unknown>>): string {
  const fields = config as unknown as BucketFields;
  return `${storeOf(fields)}/${fields.bucket_name}`;
}

/**
 * Where requests with the secrets are sent: scheme, host, port and path. When it changes, stored secrets are not reused and
 * must be given again.
 */
export function serverOf({ endpoint_url }: Readonly<Record<string, unknown>>): string {
  if (typeof endpoint_url !== 'string') return '';
  const { protocol, host, pathname } = new URL(endpoint_url);
  return `${protocol}//${host}${pathname.replace(/\/+$/, '')}`;
}

const awsRegion = '[a-z]{2}(?:-[a-z]+)+-\\d';
/** The endpoints of S3 itself. Any customer of AWS can have another host below amazonaws.com: a machine, a load balancer. */
const amazonHost = new RegExp(
  `^(?:s3(?:-fips|-accelerate|-external-1)?(?:\\.dualstack)?(?:[.-]${awsRegion})?|` +
    `(?:bucket\\.)?vpce-[a-z0-9-]+\\.s3\\.${awsRegion}\\.vpce)\\.amazonaws\\.com(?:\\.cn)?$`,
);

/** Identifies a store, within which a bucket name is unique. In AWS it is a partition: standard, China or GovCloud. */
function storeOf({ endpoint_url, region }: BucketFields): string {
  const url = endpoint_url === null ? undefined : new URL(endpoint_url);
  const host = url?.hostname.replace(/\.$/, '');
  if (!url || !host || amazonHost.test(host)) return `aws ${/^(cn|us-gov)-/.exec(region)?.[1] ?? ''}`;
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return `${host}:${port}${url.pathname.replace(/\/+$/, '')}`;
}
