/** Which endpoints a destination may have: none with a private address, unless the operator allows it. */
import type { LookupFunction } from 'node:net';
import {
  type AllowedPrivateAddresses,
  outgoingUrlProblem,
  privateAddressProblem,
  publicAddressLookup,
} from '../network/outgoing_url.ts';
import { requirePublicHost } from '../network/proxies.ts';
import { DestinationError } from './destination.ts';

/** Returns why `endpoint` cannot be used, to follow "The endpoint_url is not allowed: "; null if it can. */
export function endpointProblem(endpoint: string, allowed: AllowedPrivateAddresses): string | null {
  const problem = outgoingUrlProblem(endpoint, allowed);
  if (problem !== null && problem !== privateAddressProblem) return problem;
  const { search, hash } = new URL(endpoint);
  return search === '' && hash === '' ? problem : 'it must not contain a query or a fragment';
}

/** A DNS lookup that rejects private addresses when connecting. */
export const endpointLookup = (allowed: AllowedPrivateAddresses): LookupFunction =>
  publicAddressLookup(allowed, endpointNotAllowed);

/** Rejects a private address before a request that a proxy connects. */
export const requirePublicEndpoint = (host: string, allowed: AllowedPrivateAddresses): Promise<void> =>
  requirePublicHost(host, allowed, endpointNotAllowed);

const endpointNotAllowed = (): DestinationError =>
  new DestinationError('EndpointNotAllowed', `The endpoint_url is not allowed: ${privateAddressProblem}.`, {
    transient: false,
  });
