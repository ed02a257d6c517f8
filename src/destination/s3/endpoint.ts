import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { DestinationFault } from '../destination.ts';

const privateNetworks = new BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv4');
for (const [network, bits] of [
  ['::', 127],
  // NAT64 and 6to4 carry an IPv4 address inside, which may be a private one.
  ['64:ff9b::', 96],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const)
  privateNetworks.addSubnet(network, bits, 'ipv6');

/** Whether an address belongs to the machine itself or to a network that is not the internet. */
export function isPrivateAddress(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && privateNetworks.check(address, version === 4 ? 'ipv4' : 'ipv6');
}

const privateFault = 'it points at a private or loopback address, which this installation does not allow';

/** Says why `endpoint` cannot be used as an endpoint, to follow "The endpoint_url is refused: "; null when it can. */
export function endpointFault(endpoint: string, allowPrivate: boolean): string | null {
  if (!URL.canParse(endpoint)) return 'it is not a URL';
  const url = new URL(endpoint);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'it must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') return 'it must not hold a user name or password';
  if (url.search !== '' || url.hash !== '') return 'it must not hold a query or a fragment';
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (allowPrivate) return null;
  if (host === 'localhost' || host.endsWith('.localhost') || isPrivateAddress(host)) return privateFault;
  return null;
}

/**
 * A name look-up that refuses private addresses at the moment of connecting, since a name that was public when the
 * config was saved may have been pointed inwards afterwards.
 */
export const publicLookup: LookupFunction = (host, options, callback) => {
  lookup(host, options, (error, address, family) => {
    const found = Array.isArray(address) ? address.map((entry) => entry.address) : [address];
    if (!error && found.some(isPrivateAddress))
      callback(
        new DestinationFault('EndpointRefused', `The endpoint_url is refused: ${privateFault}.`, {
          transient: false,
        }),
        address,
        family,
      );
    else callback(error, address, family);
  });
};
