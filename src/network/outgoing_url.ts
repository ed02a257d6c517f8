import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isRefusedAddress, type AllowedPrivate } from './private_addresses.ts';

/** Why an address is refused, to follow "… is refused: ". */
export const privateFault =
  'it points at a private or loopback address, which this installation does not allow';

/**
 * Says why exportd sends nothing to a URL that a user gave, to follow "… is refused: "; null when it does. A name is
 * looked up only when it is connected to.
 */
export function outgoingUrlFault(given: string, allowed: AllowedPrivate): string | null {
  if (!URL.canParse(given) || /[\s\p{C}\\]/u.test(given)) return 'it is not a URL';
  const url = new URL(given);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'it must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') return 'it must not hold a user name or password';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isLocalName = host === 'localhost' || host.endsWith('.localhost');
  return isRefusedAddress(isLocalName ? '127.0.0.1' : host, allowed) ? privateFault : null;
}

/**
 * A name look-up that refuses private addresses at the moment of connecting, since a name that was public when it was
 * saved may have been pointed inwards afterwards.
 * @param refusal the error to refuse with.
 */
export const guardedLookup =
  (allowed: AllowedPrivate, refusal: () => Error): LookupFunction =>
  (host, options, callback) => {
    lookup(host, options, (error, address, family) => {
      const found = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
      if (!error && found.some((one) => isRefusedAddress(one, allowed))) callback(refusal(), address, family);
      else callback(error, address, family);
    });
  };
