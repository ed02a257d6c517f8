import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Settings } from '../config/settings.ts';
import { publicAddressLookup, outgoingUrlProblem, privateAddressProblem } from '../network/outgoing_url.ts';
import type { AllowedPrivateAddresses } from '../network/private_addresses.ts';
import { signedHeaders } from './signature.ts';

/** Result of one attempt to send a message. */
export interface Attempt {
  readonly delivered: boolean;
  /** Status code of the response; null without a response. */
  readonly status: number | null;
  /** A sentence for the owner of the webhook. Never contains text from the receiver. */
  readonly detail: string;
}

export type WebhookSettings = Pick<Settings, 'EXPORTD_ALLOW_PRIVATE_ENDPOINTS' | 'EXPORTD_WEBHOOK_TIMEOUT'>;

/** Response bodies are discarded. The connection is closed when one exceeds this size. */
const maxResponseBytes = 65_536;

class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';
}

/** A message, and the secret that signs it, if the receiver has one. */
export interface WebhookMessage {
  readonly id: string;
  readonly url: string;
  readonly secret: string | undefined;
  readonly body: string;
}

/** Sends a message once. Follows no redirects. Any response but 2xx is a failure. Never rejects. */
export async function sendWebhook(message: WebhookMessage, settings: WebhookSettings): Promise<Attempt> {
  const { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowed, EXPORTD_WEBHOOK_TIMEOUT: timeoutMs } = settings;
  const problem = outgoingUrlProblem(message.url, allowed);
  if (problem !== null) return undelivered(`The url is not allowed: ${problem}.`);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    return outcomeOf(await post(message, allowed, signal));
  } catch (error) {
    if (signal.aborted) return undelivered(`The receiver did not respond within ${timeoutMs / 1_000} s.`);
    return undelivered(describeNetworkError(error));
  }
}

/** Returns the status code of the response. */
function post(
  { id, url, secret, body }: WebhookMessage,
  allowed: AllowedPrivateAddresses,
  signal: AbortSignal,
): Promise<number> {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'exportd',
        ...(secret === undefined ? { 'webhook-id': id } : signedHeaders(secret, id, new Date(), body)),
      },
      agent: false,
      signal,
      lookup: publicAddressLookup(allowed, () => new ForbiddenAddress(privateAddressProblem)),
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxResponseBytes) response.destroy();
      });
      // Errors after the status code do not matter.
      response.on('error', () => undefined);
      resolve(response.statusCode ?? 0);
    });
    sent.end(body);
  });
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

function describeNetworkError(error: unknown): string {
  if (error instanceof ForbiddenAddress) return `The url is not allowed: ${error.message}.`;
  const code = Error.isError(error) && 'code' in error && typeof error.code === 'string' ? error.code : '';
  return `The receiver could not be reached${code === '' ? '' : ` (${code})`}.`;
}
