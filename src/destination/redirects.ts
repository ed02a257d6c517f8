/** Temporary redirects: a store that has just made a bucket, or moves it, answers with where it is for now. */
import type { S3Client, ServiceInputTypes, ServiceOutputTypes } from '@aws-sdk/client-s3';
import { getSmithyContext } from '@smithy/core/client';
import { HttpRequest } from '@smithy/core/protocols';
import { type AllowedPrivateAddresses, outgoingUrlProblem } from '../network/outgoing_url.ts';
import type { S3Config } from './config.ts';
import { DestinationError } from './destination.ts';

type Headers = Readonly<Record<string, string>>;

/** An answer with the status 307. */
class TemporaryRedirect extends DestinationError {
  /** The header `Location`. */
  readonly location: string | undefined;
  /** The region of the bucket, which AWS names. */
  readonly region: string | undefined;

  constructor(operation: string, headers: Headers) {
    super(
      'TemporaryRedirect',
      `The S3 server answered ${operation} with a temporary redirect (status 307), which exportd could not follow. Check region and endpoint_url of the destination if that lasts.`,
      { transient: true },
    );
    this.location = headers.location;
    this.region = regionIn(headers);
  }
}

const regionIn = ({ 'x-amz-bucket-region': region = '' }: Headers): string | undefined =>
  /^[a-z0-9-]{1,40}$/.test(region) ? region : undefined;

/** The error of an answer that leads elsewhere; undefined of one that only something between exportd and a store sends. */
export function redirectOf(
  operation: string,
  status: number,
  headers: Headers,
): DestinationError | undefined {
  if (status === 307) return new TemporaryRedirect(operation, headers);
  if (status !== 301 && status !== 308) return undefined;
  const { location = '' } = headers;
  const region = regionIn(headers);
  const host = URL.canParse(location) ? new URL(location).host : '';
  const place = region === undefined ? host : `the region ${region}`;
  return new DestinationError(
    'PermanentRedirect',
    `The bucket is elsewhere${place === '' ? '' : `: ${place}`}; check region and endpoint_url of the destination.`,
    { transient: false },
  );
}

const awsHost = /(^|\.)amazonaws\.com(\.cn)?$/;

/**
 * Where a redirect leads, if it is followed: on AWS to another of its hosts, else to any address that `endpoint_url` could
 * have. Never to another object, which may be of others and is then deleted or replaced, nor to another operation on this one,
 * nor from TLS to plain text.
 */
function targetOf(
  { location }: TemporaryRedirect,
  from: HttpRequest,
  { endpoint_url }: Pick<S3Config, 'endpoint_url'>,
  allowed: AllowedPrivateAddresses,
): URL | null {
  const base = `${from.protocol}//${from.headers.host}${from.path}`;
  if (location === undefined || !URL.canParse(location, base)) return null;
  const url = new URL(location, base);
  if (url.pathname !== from.path) return null;
  // AWS adds `rk`. Anything else, such as a version or `acl`, would be signed as if exportd had asked for it.
  for (const [name, value] of url.searchParams)
    if (name !== 'rk' && ![from.query[name]].flat().includes(value)) return null;
  if (from.protocol === 'https:' && url.protocol !== 'https:') return null;
  if (endpoint_url === null) return awsHost.test(url.hostname) ? url : null;
  return outgoingUrlProblem(url.origin, allowed) === null ? url : null;
}

interface AuthScheme {
  readonly httpAuthOption: { signingProperties?: Readonly<Record<string, unknown>> };
}

/** A request that is not signed yet, and what sends it. */
interface Sent {
  readonly input: ServiceInputTypes;
  readonly request: unknown;
}
type Send = (args: Sent) => Promise<{ readonly response: unknown; readonly output: ServiceOutputTypes }>;

/** Follows a temporary redirect once for each request, with a signature for the host that it leads to. */
export function followRedirects(
  client: S3Client,
  config: Pick<S3Config, 'endpoint_url'>,
  allowed: AllowedPrivateAddresses,
): void {
  client.middlewareStack.addRelativeTo(
    (next: Send, context: object) => async (args: Sent) => {
      try {
        return await next(args);
      } catch (error) {
        if (!(error instanceof TemporaryRedirect) || !HttpRequest.isInstance(args.request)) throw error;
        const url = targetOf(error, args.request, config, allowed);
        if (!url) throw error;
        const request = HttpRequest.clone(args.request);
        request.protocol = url.protocol;
        request.hostname = url.hostname;
        if (url.port === '') delete request.port;
        else request.port = Number(url.port);
        request.query = { ...Object.fromEntries(url.searchParams), ...request.query };
        request.headers.host = url.host;
        const { httpAuthOption } = getSmithyContext(context).selectedHttpAuthScheme as AuthScheme;
        const { signingProperties } = httpAuthOption;
        try {
          if (error.region !== undefined)
            httpAuthOption.signingProperties = { ...signingProperties, signingRegion: error.region };
          return await next({ ...args, request });
        } finally {
          if (signingProperties) httpAuthOption.signingProperties = signingProperties;
        }
      }
    },
    // After the SDK's retries, and before the request is signed.
    { relation: 'before', toMiddleware: 'httpSigningMiddleware', name: 'followRedirects' },
  );
}
