import { lookup } from 'node:dns';
import { BlockList, isIPv4, isIPv6, type LookupFunction } from 'node:net';

const addresses = (networks: readonly (readonly [string, number])[], version: 'ipv4' | 'ipv6'): BlockList => {
  const list = new BlockList();
  for (const [network, bits] of networks) list.addSubnet(network, bits, version);
  return list;
};

/** IPv4 networks that are not public. */
const private4 = addresses(
  [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    // Azure's platform address for virtual machines.
    ['168.63.129.16', 32],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ],
  'ipv4',
);
/** The public IPv6 addresses. Ranges with embedded IPv4 addresses are outside, except two. */
const public6 = addresses([['2000::', 3]], 'ipv6');
const private6 = addresses(
  [
    ['2001::', 23],
    ['2001:db8::', 32],
    ['2002::', 16],
    ['3fff::', 20],
  ],
  'ipv6',
);

const loopback = addresses([['127.0.0.0', 8]], 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Which private addresses exportd may connect to: all, none, or loopback addresses only. */
export type AllowedPrivateAddresses = boolean | 'loopback';

/** Whether exportd does not connect to an address. Host names are never blocked here, but resolved first. */
const isBlockedAddress = (address: string, allowed: AllowedPrivateAddresses): boolean =>
  allowed !== true && isPrivateAddress(address) && !(allowed === 'loopback' && isLoopbackAddress(address));

function isLoopbackAddress(address: string): boolean {
  // BlockList also checks IPv4 addresses embedded in IPv6 ones.
  return loopback.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}

/** Whether an address is not public. */
function isPrivateAddress(address: string): boolean {
  if (isIPv4(address)) return private4.check(address, 'ipv4');
  const [plain = ''] = address.split('%');
  return isIPv6(plain) && (!public6.check(plain, 'ipv6') || private6.check(plain, 'ipv6'));
}

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
