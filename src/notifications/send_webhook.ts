import { createHmac, randomBytes } from 'node:crypto';
import { bounds } from '../config/bounds.ts';
import type { Settings } from '../config/settings.ts';
import { outgoingUrlProblem, privateAddressProblem, publicAddressLookup } from '../network/outgoing_url.ts';
import {
  post,
  type Proxies,
  proxyOf,
  type ProxyProblem,
  proxyProblemOf,
  requirePublicHost,
} from '../network/proxies.ts';

const prefix = 'whsec_';
const newSecretBytes = 32;
/** Key lengths that Standard Webhooks allows, in bytes. */
const minBytes = 24;
const maxBytes = 64;

/** Creates a random secret: `whsec_` and the key in base64. */
export const createWebhookSecret = (): string => prefix + randomBytes(newSecretBytes).toString('base64');

/** Whether a string is a Standard Webhooks secret: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  const encoded = text.slice(prefix.length);
  const key = keyOf(text);
  return (
    text.startsWith(prefix) &&
    key.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '') &&
    key.length >= minBytes &&
    key.length <= maxBytes
  );
}

/**
 * Returns the signature headers of a message, as Standard Webhooks defines them.
 * @param id the same for every attempt to send the message
 * @param now the time of this attempt; receivers reject messages that are too old
 */
export function signedHeaders(secret: string, id: string, now: Date, body: string): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1_000));
  const signature = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}

const keyOf = (secret: string): Buffer => Buffer.from(secret.slice(prefix.length), 'base64');

/** Result of one attempt to send a message. */
export interface Attempt {
  readonly delivered: boolean;
  /** Status code of the response; null without a response. */
  readonly status: number | null;
  /** A sentence for the owner of the webhook. Never contains text from the receiver. */
  readonly detail: string;
}

export type WebhookSettings = Pick<Settings, 'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_WEBHOOK_TIMEOUT'> &
  Proxies;

class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/** A message, and the secret that signs it, if the receiver has one. */
interface WebhookMessage {
  readonly id: string;
  readonly url: string;
  readonly secret: string | undefined;
  readonly body: string;
}

/** Sends a message once. Follows no redirects. Any response but 2xx is a failure. Never rejects. */
export async function sendWebhook(message: WebhookMessage, settings: WebhookSettings): Promise<Attempt> {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowed, EXPORTD_WEBHOOK_TIMEOUT: timeoutMs } = settings;
  const forbidden = outgoingUrlProblem(message.url, allowed);
  if (forbidden !== null) return undelivered(`The url is not allowed: ${forbidden}.`);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return outcomeOf(await send(message, settings, signal));
  } catch (error) {
    if (signal.aborted) return undelivered(`The receiver did not respond within ${timeoutMs / 1_000} s.`);
    const problem = isProxied(message.url, settings) ? proxyProblemOf(error) : undefined;
    return undelivered(problem ? describeProxyProblem(problem) : describeNetworkError(error));
  }
}

/** Returns the status code of the response. */
async function send(
  { id, url, secret, body }: WebhookMessage,
  settings: WebhookSettings,
  signal: AbortSignal,
): Promise<number> {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowed } = settings;
  const forbidden = () => new ForbiddenAddress(privateAddressProblem);
  if (isProxied(url, settings)) await requirePublicHost(new URL(url).hostname, allowed, forbidden);
  const response = await post(url, settings, {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'exportd',
      ...(secret === undefined ? { 'webhook-id': id } : signedHeaders(secret, id, new Date(), body)),
    },
    body,
    signal,
    lookup: publicAddressLookup(allowed, forbidden),
    maxInterimAnswers: bounds.interimAnswers.max,
  });
  // Its body is discarded.
  let bytes = 0;
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bounds.webhookResponse.max) response.destroy();
  });
  // Errors after the status code do not matter.
  response.on('error', () => undefined);
  return response.statusCode ?? 0;
}

const undelivered = (detail: string, status: number | null = null): Attempt => ({
  delivered: false,
  status,
  detail,
});

function outcomeOf(status: number): Attempt {
  if (status >= 200 && status < 300)
    return { delivered: true, status, detail: `The receiver responded with ${status}.` };
  const why = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return undelivered(`The receiver responded with ${status}${why}.`, status);
}

const isProxied = (url: string, settings: Proxies): boolean => proxyOf(new URL(url), settings) !== undefined;

const describeProxyProblem = ({ isDown, status, code }: ProxyProblem): string =>
  isDown
    ? `The proxy of exportd's machine could not be reached (${code}).`
    : `The proxy of exportd's machine did not connect to the receiver${status === undefined ? '' : ` (status ${status})`}.`;

function describeNetworkError(error: unknown): string {
  if (error instanceof ForbiddenAddress) return `The url is not allowed: ${error.message}.`;
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
  return `The receiver could not be reached${code === '' ? '' : ` (${code})`}.`;
}
