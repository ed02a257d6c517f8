import type { LookupFunction } from 'node:net';
import {
  publicAddressLookup,
  outgoingUrlProblem,
  privateAddressProblem,
} from '../../network/outgoing_url.ts';
import type { AllowedPrivateAddresses } from '../../network/private_addresses.ts';
import { DestinationError } from '../destination.ts';

/** Returns why `endpoint` cannot be used, to follow "The endpoint_url is not allowed: "; null if it can. */
export function endpointProblem(endpoint: string, allowed: AllowedPrivateAddresses): string | null {
  const problem = outgoingUrlProblem(endpoint, allowed);
  if (problem !== null && problem !== privateAddressProblem) return problem;
  const { search, hash } = new URL(endpoint);
  return search === '' && hash === '' ? problem : 'it must not contain a query or a fragment';
}

/** A DNS lookup that rejects private addresses when connecting. */
export const endpointLookup = (allowed: AllowedPrivateAddresses): LookupFunction =>
  publicAddressLookup(
    allowed,
    () =>
      new DestinationError(
        'EndpointNotAllowed',
        `The endpoint_url is not allowed: ${privateAddressProblem}.`,
        {
          transient: false,
        },
      ),
  );
