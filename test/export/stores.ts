import { DeleteObjectCommand } from '@aws-sdk/client-s3';
import { storeTraits, type StoreTraits } from '../../src/destination/store_traits.ts';
import { isProblem, readLog } from '../decisions/read_log.ts';
import type { InjectedOutcome, Interceptor, ProxiedRequest, S3Proxy } from '../e2e/s3_proxy.ts';
import type { ExportHarness } from './export_harness.ts';

/** An error response of an S3 server. */
export const errorResponse = (status: number, code: string): InjectedOutcome => ({
  status,
  body: `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>No.</Message></Error>`,
});

/** Stores what a destination test found of the store at an address. */
export const knowTraits = (
  { database, bucket }: Pick<ExportHarness, 'database' | 'bucket'>,
  { endpoint }: Pick<S3Proxy, 'endpoint'>,
  traits: Partial<StoreTraits>,
): Promise<void> =>
  storeTraits(database.pool, { team_id: 1, location: `${new URL(endpoint).host}/${bucket.bucket}` }, traits);

/** Forgets what is known of all stores. */
export const forgetTraits = async ({ database }: ExportHarness): Promise<void> => {
  await database.pool.query('delete from exportd.store_traits');
};

/** A store that refuses an upload whose parts differ in size, except the last, as Cloudflare R2 does. */
export function requiringEqualParts(requests: readonly ProxiedRequest[]): Interceptor {
  return {
    before: ({ operation, uploadId, text }) => {
      if (operation !== 'CompleteMultipartUpload') return undefined;
      const numbers = [...(text ?? '').matchAll(/<PartNumber>(\d+)</g)].map(([, number]) => Number(number));
      const sizes = numbers.map((number) => bytesOf(requests, uploadId, number));
      return new Set(sizes.slice(0, -1)).size > 1 ? errorResponse(400, 'InvalidPart') : undefined;
    },
  };
}

const bytesOf = (requests: readonly ProxiedRequest[], uploadId: string | null, number: number): number =>
  requests.findLast((part) => part.uploadId === uploadId && part.partNumber === number)?.received ?? 0;

/** A store that ignores conditions: it overwrites what has the key. */
export const withoutConditions = ({ bucket }: ExportHarness): Interceptor => ({
  before: async ({ operation, key }) => {
    if (operation === 'PutObject' || operation === 'CompleteMultipartUpload')
      await bucket.client.send(new DeleteObjectCommand({ Bucket: bucket.bucket, Key: key }));
    return undefined;
  },
});

/** The requests about files below a prefix, without those about manifests. */
export const fileRequests = ({ requests }: S3Proxy, prefix: string): readonly ProxiedRequest[] =>
  requests.filter(({ key }) => key.startsWith(`${prefix}/`) && !key.includes('/_manifests/'));

/** Bytes of files sent below a prefix. */
export const bytesSent = (proxy: S3Proxy, prefix: string): number =>
  fileRequests(proxy, prefix)
    .filter(({ operation }) => operation === 'UploadPart' || operation === 'PutObject')
    .reduce((sum, { received }) => sum + received, 0);

/** The messages of a run's log that are no information. */
export const warningsOf = ({ database }: ExportHarness, runId: string): Promise<string[]> =>
  readLog(database.pool, { run_id: runId }, isProblem);
