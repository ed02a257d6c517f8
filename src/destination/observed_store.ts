/** What the responses of a store show of it while requests are sent: its server, its versions, the checksums that it demands. */
import {
  type PutObjectCommandInput,
  type PutObjectCommandOutput,
  S3Client,
  type S3ServiceException,
} from '@aws-sdk/client-s3';
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { safeText } from '../config/bounds.ts';
import type { StoreTraits } from './store_traits.ts';

/** What the requests of a destination show of its store. */
export type ObservedStore = Writable<Pick<StoreTraits, 'server' | 'versioned' | 'demands_checksums'>>;
type Writable<Value> = { -readonly [Field in keyof Value]: Value[Field] };

/** The store that a request is sent to: clients are shared by destinations. */
export const observedStore = new AsyncLocalStorage<ObservedStore>();

/** What stores call the lack of a checksum. For S3 itself it is one of many invalid requests. */
const checksumDemands: ReadonlySet<string> = new Set([
  'InvalidRequest',
  'MissingContentMD5',
  'MissingContentMd5',
]);

/** The request header of a checksum that every store knows; undefined for what has no bytes, or has its checksum. */
function checksumOf(input: object): { readonly ContentMD5: string } | undefined {
  const { Body, ContentMD5, ChecksumCRC32 } = input as PutObjectCommandInput;
  if (!Buffer.isBuffer(Body) || ContentMD5 !== undefined || ChecksumCRC32 !== undefined) return undefined;
  return { ContentMD5: createHash('md5').update(Body).digest('base64') };
}

/** Observes the store of each request, and sends a checksum with bytes where the bucket demands one. */
export function observeStore(client: S3Client): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const store = observedStore.getStore();
      const withChecksum = (): typeof args => ({
        ...args,
        input: { ...args.input, ...checksumOf(args.input) },
      });
      try {
        const sent = await next(store?.demands_checksums === true ? withChecksum() : args);
        const { VersionId } = sent.output as PutObjectCommandOutput;
        // A bucket whose versioning is suspended says `null`, and keeps the versions that it has.
        if (store && VersionId !== undefined && VersionId !== 'null') store.versioned = true;
        return sent;
      } catch (error) {
        const { name, $metadata } = error as Partial<S3ServiceException> & Error;
        const isDemand = $metadata?.httpStatusCode === 400 && checksumDemands.has(name);
        if (!store || store.demands_checksums === true || !isDemand || !checksumOf(args.input)) throw error;
        const sent = await next(withChecksum());
        store.demands_checksums = true;
        return sent;
      }
    },
    { step: 'initialize', priority: 'low', name: 'observeStore' },
  );
  client.middlewareStack.add(
    (next) => async (args) => {
      // Only a success is of the store: a proxy in front of it may respond with errors of its own.
      const received = await next(args);
      const { headers } = received.response as { readonly headers?: { readonly server?: string } };
      const store = observedStore.getStore();
      if (store && headers?.server !== undefined)
        store.server = safeText(headers.server).slice(0, maxServerLength);
      return received;
    },
    { step: 'deserialize', priority: 'high', name: 'observeServer' },
  );
}

/** Characters of the name of a server that are kept. */
const maxServerLength = 200;
