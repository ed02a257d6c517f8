import dns from 'node:dns';
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

/** Networks as an operator lists them: IPv4 and IPv6 addresses, each with or without `/` and the bits of its prefix. */
export function networks(list: readonly string[]): BlockList {
  const found = new BlockList();
  for (const entry of list) {
    const [address = '', bits] = entry.split('/');
    const version = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (bits === undefined) found.addAddress(address, version);
    else found.addSubnet(address, Number(bits), version);
  }
  return found;
}

export const loopbackNetworks = ['127.0.0.0/8', '::1'];
const loopback = networks(loopbackNetworks);

/** What `true` allows: loopback, and the networks that are meant for private use. */
const ownNetworks = networks([
  ...loopbackNetworks,
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  'fc00::/7',
]);

/**
 * Addresses that no setting allows: link-local ones and those of the metadata services of clouds, which hand out the
 * credentials of the machine, and the unspecified address, which means the machine itself.
 */
const forbidden = networks([
  '0.0.0.0/8',
  '169.254.0.0/16',
  '::',
  'fe80::/10',
  // Azure, Alibaba, Oracle, AWS, Google.
  '168.63.129.16',
  '100.100.100.200',
  '192.0.0.192',
  'fd00:ec2::254',
  'fd20:ce::254',
  // The link-local IPv4 addresses and Azure's inside of IPv6 ones, by NAT64, 6to4 and the old compatible form.
  '64:ff9b::a9fe:0/112',
  '64:ff9b::a83f:8110',
  '2002:a9fe::/32',
  '2002:a83f:8110::/48',
  '::a9fe:0/112',
]);

/**
 * Which private addresses exportd may connect to: all that are meant for private use, none, loopback addresses only, or
 * those of a list of networks (`10.20.0.0/16`, `loopback`). Link-local addresses are never among them.
 */
export type AllowedPrivateAddresses = boolean | 'loopback' | readonly string[];

/** Whether exportd does not connect to an address. Host names are never blocked here, but resolved first. */
function isBlockedAddress(address: string, allowed: AllowedPrivateAddresses): boolean {
  const [plain = ''] = address.split('%');
  if (!isPrivateAddress(plain)) return false;
  // BlockList also checks IPv4 addresses that are written as IPv6 ones (::ffff:10.0.0.1).
  const isIn = (list: BlockList): boolean => list.check(plain, isIPv4(plain) ? 'ipv4' : 'ipv6');
  if (isIn(forbidden) || allowed === false) return true;
  if (allowed === true) return !isIn(ownNetworks);
  const listed = allowed === 'loopback' ? ['loopback'] : allowed;
  const isLoopbackListed = listed.includes('loopback');
  return (
    !isIn(networks(listed.filter((entry) => entry !== 'loopback'))) && !(isLoopbackListed && isIn(loopback))
  );
}

/** Whether an address is not public. */
function isPrivateAddress(address: string): boolean {
  if (isIPv4(address)) return private4.check(address, 'ipv4');
  return isIPv6(address) && (!public6.check(address, 'ipv6') || private6.check(address, 'ipv6'));
}

/** The reason for rejecting a private address, to follow "… is not allowed: ". */
export const privateAddressProblem =
  'it points to a private or loopback address, which the setting EXPORTD_ALLOW_PRIVATE_ENDPOINTS of this installation does not allow';

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
    dns.lookup(host, options, (error, address, family) => {
      const found = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
      if (!error && found.some((one) => isBlockedAddress(one, allowed)))
        callback(createError(), address, family);
      else callback(error, address, family);
    });
  };
