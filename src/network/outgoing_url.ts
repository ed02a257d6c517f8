import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isBlockedAddress, type AllowedPrivateAddresses } from './private_addresses.ts';

/** The reason for rejecting a private address, to follow "… is not allowed: ". */
export const privateAddressProblem =
  'it points to a private or loopback address, which the setting EXPORTD_ALLOW_PRIVATE_ENDPOINTS of this installation forbids';

/**
 * Returns why exportd does not send requests to a URL, to follow "… is not allowed: "; null if it is allowed. Host
 * names are resolved later, when connecting.
 */
export function outgoingUrlProblem(given: string, allowed: AllowedPrivateAddresses): string | null {
  if (!URL.canParse(given) || /[\s\p{C}\\]/u.test(given)) return 'it is not a valid URL';
  const url = new URL(given);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'it must start with https:// or http://';
  if (url.username !== '' || url.password !== '') return 'it must not contain a user name or password';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const isLocalName = host === 'localhost' || host.endsWith('.localhost');
  return isBlockedAddress(isLocalName ? '127.0.0.1' : host, allowed) ? privateAddressProblem : null;
}

/**
 * A DNS lookup that rejects private addresses when connecting, because a name that was public when it was saved may
 * resolve to a private address later.
 * @param createError creates the error to reject with
 */
export const publicAddressLookup =
  (allowed: AllowedPrivateAddresses, createError: () => Error): LookupFunction =>
  (host, options, callback) => {
    lookup(host, options, (error, address, family) => {
      const found = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
      if (!error && found.some((one) => isBlockedAddress(one, allowed)))
        callback(createError(), address, family);
      else callback(error, address, family);
    });
  };
