/** Why a destination is unavailable: its circuit is open. */
export interface OpenCircuit {
  /** The error of the latest request, as a message for users. */
  readonly error: string;
  /** When the destination stopped responding, and when it is probed next; ISO 8601. */
  readonly opened_at: string;
  readonly next_probe_at: string;
}

/** The type of the error of an attempt whose destination is unavailable. */
export const destinationUnavailable = 'DestinationUnavailable';

/** Says for users why a run waits for its destination. */
export const describeOpenCircuit = ({ error, opened_at, next_probe_at }: OpenCircuit): string =>
  `${error.replace(/\.$/, '')}, since ${opened_at}, next probe ${next_probe_at}.`;

/** The name of a bucket for people: `exportd-demo at 127.0.0.1:9000`. AWS has no endpoint in a config. */
export function bucketName({ bucket_name, endpoint_url }: Readonly<Record<string, unknown>>): string {
  const isAddress = typeof endpoint_url === 'string' && URL.canParse(endpoint_url);
  return isAddress ? `${String(bucket_name)} at ${new URL(endpoint_url).host}` : String(bucket_name);
}

const minSpreadMs = 200;
const maxSpreadMs = 10_000;
/** No attempt waits longer than this: the destination may have recovered. */
const maxDelayMs = 30_000;

/**
 * When an attempt checks an open circuit again, in milliseconds: some time after the next probe. The longer the circuit is
 * open, the further apart attempts check, since all of them would otherwise return at once.
 * @param random from 0 to 1
 */
export function circuitRetryDelayMs(
  { nextProbeInMs, openForMs }: { readonly nextProbeInMs: number; readonly openForMs: number },
  random: number,
): number {
  const spread = Math.min(Math.max(openForMs, minSpreadMs), maxSpreadMs);
  const latest = maxDelayMs - (1 - random) * maxSpreadMs;
  return Math.round(Math.min(Math.max(nextProbeInMs, 0) + random * spread, latest));
}
